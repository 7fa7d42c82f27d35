"""The studio's page in a browser: a test for each of its uses."""

from __future__ import annotations

import re
from typing import Literal

import pytest
from playwright.sync_api import Locator, expect

from tests.studio.browser.chromium import PAGE, ROOT
from tests.studio.browser.studio import Studio

QUICKSTARTS = {
    "kserve": ("LLMInferenceService", {"Deployment", "Service", "Pod"}, "replicas", "replica"),
    "llmaz": ("Playground", {"OpenModel", "Service", "Deployment", "Pod"}, "modelClaim", "modelClam"),
    "llmkube": ("InferenceService", {"Model", "Deployment", "Service", "Job", "Pod"}, "modelRef", "modelref"),
}
RED = "rgb(184, 44, 38)"
SESSION = {"version": "1", "live": False, "context": "", "documents": [], "docs": "", "fields": {}}
SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
PULL = "An image cannot be pulled"


def example(name: str) -> str:
    return (ROOT / "examples" / f"{name}.yaml").read_text()


@pytest.mark.parametrize("family", QUICKSTARTS)
def test_what_is_typed_shows_children_and_findings(studio: Studio, family: str) -> None:
    parent, kinds, right, wrong = QUICKSTARTS[family]
    text = example(f"{family}/quickstart")
    studio.write(text)
    expect(studio.counted).to_have_text("No findings")
    expect(studio.item(parent)).to_have_count(1)
    for kind in kinds:
        expect(studio.item(kind).first).to_be_attached()
    expect(studio.cards).to_have_count(studio.page.locator("#tree [role=treeitem]").count())

    studio.write(text.replace(f"{right}:", f"{wrong}:"))
    expect(studio.problems.filter(has_text=wrong).first).to_be_visible()
    expect(studio.page.locator("#editor .cm-lintRange-error").first).to_be_visible()


def test_the_page_says_what_it_assumes(studio: Studio) -> None:
    """The sentences of the commands, below the findings."""
    model, playground = example("llmaz/quickstart").split("\n---\n")
    assumptions = studio.page.get_by_role("list", name="Assumptions").get_by_role("listitem")
    studio.write(playground)
    expect(assumptions).to_have_text(
        [re.compile("^taken as given: BackendRuntime "), "not among the files: OpenModel opt-tiny"]
    )
    studio.write(model)
    expect(assumptions).to_have_count(0)


def test_a_button_corrects_a_finding(studio: Studio) -> None:
    studio.write(example("llmkube/quickstart").replace("memory: 1Gi", "memory: 1 GB"))
    studio.problems.get_by_role("button", name="Write 1Gi").click()
    expect(studio.editor).to_contain_text("memory: 1Gi")
    expect(studio.counted).to_have_text("No findings")


def test_findings_are_grouped_by_file_and_tabs_have_the_names_of_files(studio: Studio) -> None:
    page = studio.page
    page.evaluate("location.hash = ''")
    session = {
        **SESSION,
        "documents": [
            {
                "name": "deploy/one/chat.yaml",
                "text": example("llmkube/quickstart").replace("memory: 1Gi", "memory: 1 GB"),
            },
            {"name": "deploy/two/chat.yaml", "text": example("llmaz/quickstart").replace("modelName:", "modelNam:")},
            {"name": "deploy/two/other.yaml", "text": example("kserve/quickstart")},
        ],
    }
    page.route("**/api/session", lambda route: route.fulfill(json=session))
    page.goto(page.url.split("#")[0] + "?")
    tabs = page.locator(".document")
    expect(tabs).to_have_text(["one/chat.yaml", "two/chat.yaml", "other.yaml"])
    files = page.locator(".finding-file")
    expect(files.get_by_role("heading")).to_have_text(
        [re.compile("^deploy/one/chat.yaml: 1 error"), re.compile("^deploy/two/chat.yaml: ")]
    )
    files.first.get_by_role("button", name="Write 1Gi").click()
    expect(files).to_have_count(0)
    assert violations(studio) == []


def test_a_finding_is_corrected_where_the_mouse_rests(studio: Studio) -> None:
    studio.write(example("llmkube/quickstart").replace("contextSize", "contextsize"))
    studio.page.locator("#editor .cm-lintRange-error").first.hover()
    studio.page.locator("#editor .cm-tooltip").get_by_role("button", name="Write contextSize").click()
    expect(studio.counted).to_have_text("No findings")
    studio.page.keyboard.press("Control+z")
    expect(studio.editor).to_contain_text("contextsize")


def test_completion_and_hover_come_from_the_schemas(studio: Studio) -> None:
    studio.write(example("llmkube/quickstart"))
    studio.page.keyboard.press("Control+End")
    studio.page.keyboard.type("  runti")
    expect(studio.page.locator("#editor [role=option]").first).to_have_text(re.compile("^runtime *string"))
    accept(studio)
    expect(studio.page.locator("#editor [role=option]", has_text="vllm")).to_be_visible()
    studio.page.keyboard.type("vll")
    expect(studio.page.locator("#editor [role=option]")).to_have_count(1)
    accept(studio)
    expect(studio.editor).to_contain_text("runtime: vllm")

    studio.page.locator("#editor .cm-line", has_text="contextSize").locator("span").first.hover()
    expect(studio.page.locator("#editor .cm-hover")).to_contain_text("Context size in tokens")


def accept(studio: Studio) -> None:
    """Accept the completion. The editor ignores the key for some milliseconds, too few to read it."""
    studio.page.wait_for_timeout(100)
    studio.page.keyboard.press("Enter")


def test_an_object_shows_its_yaml_its_conditions_and_who_set_its_values(studio: Studio) -> None:
    studio.write(example("llmkube/quickstart"))
    expect(studio.card("Deployment")).to_be_visible()
    studio.choose("Deployment")
    about = studio.page.get_by_role("complementary", name="Object")
    expect(about.get_by_role("heading")).to_have_text("Deployment smollm-chat")
    expect(about.get_by_role("tab", name="Values")).to_have_attribute("aria-selected", "true")
    mine = about.get_by_role("button", name="Set by me")
    expect(mine).to_have_attribute("aria-pressed", "true")
    expect(about.locator(".origins tbody tr")).not_to_have_count(0)
    rows = about.locator(".origins tbody tr")
    assert rows.count() == rows.get_by_role("button").count()
    mine.click()
    expect(rows.filter(has_text="default").first).to_be_visible()
    about.get_by_role("tab", name="Status").click()
    expect(about.get_by_role("row", name="Available True")).to_be_visible()
    about.get_by_role("tab", name="YAML").click()
    expect(about.locator(".cm-content")).to_contain_text("kind: Deployment")

    about.get_by_role("tab", name="Values").click()
    about.get_by_role("searchbox").fill("resources")
    expect(about.locator(".origins tbody tr")).not_to_have_count(0)
    assert all("resources" in path for path in about.locator(".origins tbody th").all_inner_texts())
    about.get_by_role("searchbox").fill("memory")
    about.locator(".origins tbody").get_by_role("button", name="spec.resources.memory").first.click()
    expect(studio.page.locator("#editor .cm-activeLine")).to_have_text(re.compile("memory: 1Gi"))


def test_a_simulated_failure_is_red_and_says_its_cause(studio: Studio) -> None:
    studio.write(example("llmkube/quickstart"))
    studio.show("Simulate")
    expect(studio.card("InferenceService")).to_have_class(re.compile(r"\bready\b"))
    studio.page.get_by_role("checkbox", name=PULL).check()
    for kind in ("InferenceService", "Deployment"):
        expect(studio.card(kind)).to_have_class(re.compile(r"\bfailing\b"))
        expect(studio.card(kind)).to_contain_text("Failing")
    expect(studio.card("InferenceService")).to_have_css("border-top-color", RED)
    slider = studio.page.get_by_role("slider", name="Moment")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("something fails"))
    marks = studio.page.locator(".marks span")
    expect(marks).not_to_have_count(0)
    assert marks.count() <= int(slider.get_attribute("max") or 0), "the beginning fails nowhere"
    studio.choose("Deployment")
    expect(studio.page.get_by_role("tab", name="Status")).to_have_attribute("aria-selected", "true")
    with studio.page.expect_request("**/api/yaml") as request:
        studio.page.get_by_role("tab", name="YAML").click()
    asked = request.value.post_data_json or {}
    assert (asked["scenes"], asked["step"]) == (["image-pull-fails"], int(slider.input_value()))
    expect(studio.page.locator(".inspector .cm-content")).to_contain_text("kind: Deployment")
    studio.page.get_by_role("button", name="Close", exact=True).click()

    status = studio.page.locator(".parent-status.failing")
    expect(status).to_contain_text("Ready: False")
    expect(status).to_contain_text("cannot pull its image")
    words = status.locator("p").inner_text()
    expect(studio.item("InferenceService")).to_contain_text(words)


def test_time_goes_step_by_step(studio: Studio) -> None:
    studio.show("Simulate")
    slider = studio.page.get_by_role("slider")
    expect(slider).to_be_enabled()
    last = int(slider.get_attribute("max") or 0)
    assert last > 2
    slider.fill("0")
    expect(studio.page.locator(".moment")).to_contain_text(f"1 of {last + 1}")
    expect(studio.card("InferenceService")).to_have_class(re.compile(r"\bwaiting\b"))
    studio.page.get_by_role("button", name="Next moment").click()
    expect(studio.page.locator(".moment")).to_contain_text(f"2 of {last + 1}")
    slider.fill(str(last - 2))
    studio.page.get_by_role("button", name="Play").click()
    expect(studio.page.locator(".moment")).to_contain_text(f"{last + 1} of {last + 1}")
    expect(studio.page.get_by_role("button", name="Play")).to_be_visible()


def test_a_comparison_names_the_restart(studio: Studio) -> None:
    studio.write(example("llmkube/quickstart"))
    studio.show("Compare")
    studio.page.get_by_role("button", name="Compare with this from now on").click()
    expect(studio.page.locator(".changes")).to_contain_text("Nothing changes.")
    studio.write(example("llmkube/quickstart").replace("contextSize: 4096", "contextSize: 8192"))
    change = studio.page.locator(".change").filter(has_text="Deployment")
    expect(change.locator("summary .effect")).to_have_text("rolls pods")
    expect(change.get_by_role("row").filter(has_text="args")).to_contain_text("8192")
    expect(studio.page.locator(".changes-summary")).to_contain_text("restart")
    edit = studio.page.get_by_role("list", name="Changed lines").get_by_role("listitem")
    expect(edit).to_contain_text("spec.contextSize: 4096 → 8192")
    edit.get_by_role("button").click()
    expect(studio.page.locator(".cm-activeLine")).to_contain_text("contextSize: 8192")

    studio.page.get_by_role("button", name="Take the earlier version back").click()
    expect(studio.page.locator(".change")).to_have_count(0)
    expect(studio.editor).to_contain_text("contextSize: 4096")

    many = "".join(f"\n---\napiVersion: v1\nkind: Secret\nmetadata: {{name: token-{number}}}" for number in range(13))
    studio.write(example("llmkube/quickstart") + many)
    expect(studio.page.get_by_text("13 changed lines")).to_be_visible()
    expect(studio.page.get_by_role("list", name="Changed lines")).to_be_hidden()


def test_a_comparison_of_a_setting(studio: Studio) -> None:
    studio.write(example("llmkube/quickstart"))
    studio.show("Compare")
    studio.page.get_by_text("Settings of the service").click()
    setting = studio.page.get_by_label("Setting", exact=True)
    names = setting.locator("option").all_inner_texts()
    (name,) = [option for option in names if option.endswith("INIT_CONTAINER_IMAGE")] or names[:1]
    setting.select_option(name)
    studio.page.get_by_role("button", name="Add").click()
    studio.page.get_by_label(f"{name}, after").fill("registry.example.com/other:1")
    expect(studio.page.locator(".change").first).to_contain_text("registry.example.com/other:1")


def test_the_address_has_the_documents(studio: Studio) -> None:
    studio.write("# naïve: 模型\napiVersion: v1\n")
    studio.show("Compare")
    page = studio.page
    page.wait_for_function("before => location.hash !== before", arg="")
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#note")).to_contain_text("address")
    page.reload()
    page.wait_for_selector("html[data-loaded]", state="attached")
    expect(studio.editor).to_contain_text("naïve: 模型")
    expect(page.get_by_role("tab", name="Compare")).to_have_attribute("aria-selected", "true")


def test_files_are_dropped_and_documents_have_tabs(studio: Studio) -> None:
    page = studio.page
    data = page.evaluate_handle(
        """text => {
            const data = new DataTransfer();
            data.items.add(new File([text], "chat.yaml"));
            return data;
        }""",
        example("kserve/quickstart"),
    )
    page.dispatch_event("body", "dragover", {"dataTransfer": data})
    expect(page.locator("#dropping")).to_be_visible()
    page.dispatch_event("#main", "drop", {"dataTransfer": data})
    expect(page.locator("#dropping")).to_be_hidden()
    documents = page.get_by_role("navigation", name="Documents")
    expect(documents.get_by_role("button", name="chat.yaml", exact=True)).to_have_attribute("aria-current", "true")
    expect(studio.item("LLMInferenceService")).to_have_count(1)
    expect(studio.item("InferenceService")).to_have_count(1)

    documents.get_by_role("button", name="chat.yaml", exact=True).dblclick()
    page.keyboard.type("renamed.yaml\n")
    expect(documents).to_contain_text("renamed.yaml")
    documents.get_by_role("button", name="Close renamed.yaml").click()
    expect(studio.item("LLMInferenceService")).to_have_count(0)


def test_everything_is_done_with_the_keyboard(studio: Studio) -> None:
    """From an example through a mistake and its correction to an object of the graph and the line that set a value."""
    page, press = studio.page, studio.page.keyboard.press

    def tab_to(wanted: Locator) -> None:
        for _ in range(40):
            if wanted.evaluate("element => element === document.activeElement"):
                return
            press("Tab")
        raise AssertionError("Tab does not lead there")

    tab_to(page.get_by_role("button", name="Examples"))
    press("Enter")
    page.keyboard.type("quickstart")
    press("Tab")
    press("Tab")
    press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(studio.editor).to_be_focused()
    press("Control+End")
    page.keyboard.type("  replica: 2\n")
    expect(studio.counted).to_contain_text("error")
    press("F8")
    press("Control+.")
    expect(studio.editor).to_contain_text("replicas: 2")
    expect(studio.counted).to_have_text("No findings")

    press("Alt+2")
    expect(page.get_by_role("tab", name="Simulate")).to_be_focused()
    expect(page.get_by_role("checkbox", name=PULL)).to_be_attached()
    tab_to(page.get_by_role("checkbox", name=PULL))
    press("Space")
    expect(studio.item("Deployment")).to_have_class(re.compile(r"\bfailing\b"))
    press("Alt+1")
    expect(studio.item("Deployment")).to_have_class(re.compile(r"\bready\b"))
    tab_to(page.locator('#tree [tabindex="0"]'))
    for _ in range(20):
        if page.evaluate("document.activeElement.dataset.node").startswith("Deployment."):
            break
        press("ArrowDown")
    expect(studio.card("Deployment")).to_have_class(re.compile(r"\bselected\b"))
    press("Enter")
    about = page.get_by_role("complementary", name="Object")
    expect(about.get_by_role("tab", name="Values")).to_be_focused()
    expect(about.locator(".origins tbody tr").first).to_be_visible()
    press("Escape")
    expect(about).to_be_hidden()
    expect(studio.item("Deployment")).to_be_focused()


def test_axe_finds_nothing_serious(studio: Studio) -> None:
    page = studio.page
    studio.write(example("llmkube/quickstart").replace("memory: 1Gi", "memory: 1 GB"))
    expect(studio.problems).not_to_have_count(0)
    assert violations(studio) == []
    studio.write(example("llmkube/quickstart"))
    expect(studio.counted).to_have_text("No findings")
    expect(studio.card("Deployment")).to_be_visible()
    studio.choose("Deployment")
    for tab in ("Status", "YAML", "Values"):
        page.get_by_role("tab", name=tab, exact=True).click()
        assert violations(studio) == []
    page.get_by_role("button", name="List").click()
    assert violations(studio) == []
    studio.editor.press("Control+f")
    expect(page.locator("#editor").get_by_placeholder("Find")).to_be_focused()
    assert violations(studio) == []
    studio.show("Simulate")
    page.get_by_role("checkbox", name=PULL).check()
    expect(page.locator(".parent-status.failing")).to_be_visible()
    assert violations(studio) == []
    studio.show("Compare")
    studio.write(example("llmkube/quickstart").replace("4096", "8192"))
    expect(page.locator(".change")).not_to_have_count(0)
    assert violations(studio) == []
    for dialog in ("Examples", "Keyboard shortcuts"):
        page.get_by_role("button", name=dialog).click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert violations(studio) == []
        page.keyboard.press("Escape")
    page.set_viewport_size({"width": 360, "height": 800})
    assert violations(studio) == []


def test_axe_finds_nothing_serious_in_live(studio: Studio) -> None:
    page = studio.page
    text = example("llmkube/quickstart")
    manifest = {"name": "inferenceservice-smollm-chat.yaml", "text": text}
    graph = page.request.post(f"{page.url.split('#')[0]}api/graph", data={"documents": [manifest]}).json()
    states = [("True", ""), ("Unknown", "no answer yet"), ("False", "pod smollm-chat-0 cannot pull its image")]
    objects = [
        {
            "family": "llmkube",
            "kind": "InferenceService",
            "resource": "inferenceservice.inference.llmkube.dev",
            "namespace": "default",
            "name": f"chat-{ready.lower()}",
            "ready": ready,
            "cause": cause,
        }
        for ready, cause in states
    ]
    edit = {"line": 16, "column": 3, "object": "InferenceService/smollm-chat", "path": "spec.contextSize"}
    comparison = {
        "edits": [{**edit, "document": "edited.yaml", "before": 4096, "after": 8192}],
        "objects": [],
        "summary": "Nothing changes.",
        "command": "kubectl apply",
        "findings": [],
    }
    page.route("**/api/session", lambda route: route.fulfill(json={**SESSION, "live": True, "context": "large"}))
    page.route("**/api/live/objects", lambda route: route.fulfill(json=objects))
    page.route("**/api/live/events", lambda route: route.fulfill(body="", content_type="text/event-stream"))
    page.route("**/api/live/graph?*", lambda route: route.fulfill(json={**graph, "manifest": manifest, "related": []}))
    page.route("**/api/live/compare", lambda route: route.fulfill(json=comparison))
    page.goto(page.url.split("#")[0] + "?")
    rows = page.locator(".live-row")
    expect(rows).to_contain_text(["chat-false", "chat-unknown", "chat-true"])
    assert violations(studio) == []
    rows.first.click()
    expect(page.locator(".live-object")).to_contain_text("pod smollm-chat-0 cannot pull its image")
    expect(studio.card("Deployment")).to_be_visible()
    assert violations(studio) == []
    studio.write(text.replace("4096", "8192"))
    expect(page.locator(".live-edit .command")).to_be_visible()
    assert violations(studio) == []
    page.get_by_role("button", name=f"{manifest['name']}:16").click()
    expect(page.locator(".cm-activeLine")).to_contain_text("contextSize: 8192")


def violations(studio: Studio) -> list[str]:
    """Return the violations that axe-core rates serious or critical, in dark colours and in light ones."""
    page = studio.page
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate((PAGE / "node_modules" / "axe-core" / "axe.min.js").read_text())
    results = []
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        results += page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    grave = [violation for violation in results if violation["impact"] in ("serious", "critical")]
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in grave
        for node in violation["nodes"]
    ]


def test_a_thousand_objects_stay_few_in_the_page(studio: Studio) -> None:
    """The graph starts at a readable scale, and the browser lays out only visible cards that are large enough."""
    nodes = [
        {
            "id": f"Pod.v1 default/chat-{number}",
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": f"chat-{number}",
            "role": "pod",
            "state": "ready",
            "cause": "",
            "yaml": "",
            "conditions": [],
        }
        for number in range(1000)
    ]
    studio.page.route("**/api/graph", lambda route: route.fulfill(json={"nodes": nodes, "edges": []}))
    studio.write("a: 1\n")
    expect(studio.page.locator(".summary")).to_have_text("1000 objects✓1000 ready")
    expect(studio.cards).not_to_have_count(0)
    assert studio.cards.count() < 200
    for _ in range(12):
        studio.page.get_by_role("button", name="Zoom out").click()
    expect(studio.cards).to_have_count(0)
    studio.page.get_by_role("button", name="List").click()
    studio.page.locator('#tree [tabindex="0"]').focus()
    studio.page.keyboard.press("End")
    expect(studio.page.locator("#tree [role=treeitem]").last).to_be_focused()
    expect(studio.page.locator("#tree [role=treeitem]").last).to_be_in_viewport()


def test_a_thousand_resources_of_a_cluster_stay_few_in_the_page(studio: Studio) -> None:
    page = studio.page
    objects = [
        {
            "family": "llmaz",
            "kind": "Playground",
            "resource": "playground.inference.llmaz.io",
            "namespace": f"team-{number % 7}",
            "name": f"chat-{number:03}",
            "ready": "False" if number == 500 else "True",
            "cause": "pod chat-500-0 is out of memory" if number == 500 else "",
        }
        for number in range(1000)
    ]
    page.route("**/api/session", lambda route: route.fulfill(json={**SESSION, "live": True, "context": "large"}))
    page.route("**/api/live/objects", lambda route: route.fulfill(json=objects))
    page.route("**/api/live/events", lambda route: route.fulfill(body="", content_type="text/event-stream"))
    page.goto(page.url.split("#")[0] + "?")
    rows, listed = page.locator(".live-row"), page.get_by_role("listbox", name="Objects of the cluster")
    expect(rows.first).to_contain_text("pod chat-500-0 is out of memory")
    expect(rows.first).to_have_attribute("aria-setsize", "1000")
    listed.focus()
    page.keyboard.press("End")
    expect(rows.filter(has_text="team-6/chat-993")).to_be_in_viewport()
    assert rows.count() < 60
    page.get_by_label("Namespace").select_option("team-3")
    page.get_by_role("searchbox", name="Filter by text").fill("memory")
    expect(rows).to_have_count(1)
    page.set_viewport_size({"width": 360, "height": 800})
    name = rows.locator(".live-name")
    assert name.evaluate("element => element.scrollWidth <= element.clientWidth"), "a usual name is not cut off"
    page.get_by_role("searchbox", name="Filter by text").fill("nothing has this cause")
    expect(rows).to_have_count(0)
    expect(page.locator(".live-nothing")).to_have_text("No object is like that.")


def test_a_page_without_objects_says_what_to_do(studio: Studio) -> None:
    nothing = studio.page.locator(".empty")
    studio.write("")
    expect(nothing).to_contain_text("open an example")
    studio.write("kind: [\n")
    expect(nothing).to_contain_text("the findings say why")
    studio.write("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: typed\n")
    expect(studio.problems).to_contain_text("Deployment")
    expect(nothing).to_contain_text("the findings say why")
    expect(studio.page.get_by_role("alert")).to_be_hidden()


def test_an_example_does_not_replace_what_one_wrote(studio: Studio) -> None:
    page, names = studio.page, studio.page.locator(".document")
    open_example(studio, "bucket")
    expect(names).to_have_text(["bucket.yaml"])
    studio.write("# mine\n")
    open_example(studio, "gated")
    expect(names).to_have_text(["bucket.yaml", "gated.yaml"])
    expect(page).to_have_title("gated.yaml · modelhooks studio")
    page.get_by_role("button", name="Close gated.yaml").press("Enter")
    expect(studio.editor).to_be_focused()
    expect(studio.editor).to_contain_text("# mine")


def open_example(studio: Studio, name: str) -> None:
    studio.page.get_by_role("button", name="Examples").click()
    studio.page.locator(".example").filter(has=studio.page.get_by_text(name, exact=True)).first.click()


def test_keys_lead_from_part_to_part_and_close_what_a_click_opened(studio: Studio) -> None:
    page, press = studio.page, studio.page.keyboard.press
    expect(studio.card("Deployment")).to_be_visible()
    studio.choose("Deployment")
    about = page.get_by_role("complementary", name="Object")
    expect(about).to_be_visible()
    press("Escape")
    expect(about).to_be_hidden()
    page.get_by_role("tab", name="Graph").focus()
    press("F6")
    expect(page.locator("#tree :focus")).to_have_count(1)
    press("F6")
    expect(studio.editor).to_be_focused()
    press("F6")
    expect(page.get_by_role("tab", name="Graph")).to_be_focused()  # there are no findings
    press("Shift+F6")
    expect(studio.editor).to_be_focused()


def test_another_address_opens_its_documents(studio: Studio) -> None:
    page = studio.page
    before = page.evaluate("location.hash")
    studio.write("# of a colleague\n")
    page.wait_for_function("before => location.hash !== before", arg=before)
    address = page.evaluate("location.hash")
    studio.write("# mine\n")
    page.wait_for_function("before => location.hash !== before", arg=address)
    page.evaluate("address => { location.hash = address }", address)
    expect(studio.editor).to_contain_text("# of a colleague")


def test_a_lost_studio_says_where_the_documents_are(studio: Studio) -> None:
    studio.page.context.set_offline(True)
    studio.write("# mine\n")
    expect(studio.page.get_by_role("alert")).to_contain_text("The documents are in this page's address")


def test_shows_errors_as_text(studio: Studio) -> None:
    """The studio's message is shown, and removed after the next answer."""
    studio.write(example("llmkube/quickstart"))
    studio.show("Compare")
    studio.page.get_by_text("Settings of the service").click()
    setting = studio.page.get_by_label("Setting", exact=True)
    (name,) = [option for option in setting.locator("option").all_inner_texts() if option.endswith("DEFAULT_FSGROUP")]
    setting.select_option(name)
    studio.page.get_by_role("button", name="Add").click()
    studio.page.get_by_label(f"{name}, after").fill("many")
    expect(studio.page.get_by_role("alert")).to_contain_text(name)
    studio.page.get_by_label(f"{name}, after").fill("103")
    expect(studio.page.locator(".change").first).to_contain_text("103")
    expect(studio.page.get_by_role("alert")).to_be_hidden()


def test_colours_follow_the_choice(studio: Studio) -> None:
    page = studio.page
    body = page.locator("body")
    theme = page.get_by_role("button", name=re.compile("^Theme"))
    expect(body).to_have_css("background-color", "rgb(244, 244, 241)")
    theme.click()
    theme.click()
    expect(theme).to_have_text("Theme: dark")
    expect(body).to_have_css("background-color", "rgb(16, 18, 22)")
    page.reload()
    expect(body).to_have_css("background-color", "rgb(16, 18, 22)")


def test_the_cursor_shows_what_its_line_sets_and_a_value_marks_its_line(studio: Studio) -> None:
    page = studio.page
    studio.write(example("llmkube/quickstart"))
    expect(studio.card("Deployment")).to_be_visible()
    studio.editor.locator(".cm-line", has_text="contextSize").click()
    sets = page.locator(".sets")
    expect(sets).to_contain_text(re.compile(r"Line \d+ sets \d+ values?:.*Deployment .*4096"))
    expect(studio.card("Deployment")).to_have_class(re.compile(r"\bset\b"))
    expect(studio.card("Service")).not_to_have_class(re.compile(r"\bset\b"))

    sets.get_by_role("button").first.click()
    expect(page.locator(".inspector h2")).to_contain_text("Deployment")
    row = page.locator(".origins tbody tr").first
    expect(row).to_contain_text("contextSize")
    row.hover()
    expect(studio.editor.locator(".cm-setLine")).to_contain_text("contextSize: 4096")
    page.mouse.move(5, 5)
    expect(studio.editor.locator(".cm-setLine")).to_have_count(0)

    studio.editor.locator(".cm-line", has_text="kind: InferenceService").click()
    expect(sets).to_be_hidden()


def test_a_reason_and_a_field_lead_to_their_pages(studio: Studio) -> None:
    studio.write(example("llmkube/quickstart").replace("modelRef: smollm", "modelRef: other"))
    expect(studio.card("InferenceService")).to_contain_text("Failing")
    studio.choose("InferenceService")
    reason = studio.page.locator("#inspector-status").get_by_role("link").first
    expect(reason).to_have_attribute("href", re.compile(r"/docs/troubleshooting/llmkube\.md$"))
    studio.editor.get_by_text("contextSize").hover()
    fields = studio.page.locator("#editor .cm-hover").get_by_role("link")
    expect(fields).to_have_attribute("href", re.compile(r"/docs/fields/llmkube\.md#inferenceservice-"))


def test_the_inspector_says_whether_the_model_fits(studio: Studio) -> None:
    studio.write(example("llmkube/vllm"))
    expect(studio.cards.filter(has_text="coder-7b")).to_be_visible()
    studio.choose("InferenceService")
    studio.page.get_by_role("tab", name="Fit").click()
    expect(studio.page.locator("#inspector-fit .cause")).to_contain_text(
        re.compile("^(Fits|Cannot be known|Does not fit): ")
    )
    expect(studio.page.locator("#inspector-fit tbody tr").first).to_be_visible()
    studio.choose("Deployment")
    expect(studio.page.get_by_role("tab", name="Fit")).to_be_hidden()
