"""The studio with many resources and in narrow windows: folding, filters and layout."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect

from tests.studio.browser.chromium import ROOT
from tests.studio.browser.studio import Studio
from tests.studio.browser.test_page import PULL, QUICKSTARTS, SCHEMES, example, violations

PICTURES = ROOT / "build" / "studio"
CARDS = 22
"""Cards of five quickstarts of one family: four resources each, and two objects that all of them read."""


def fleet(size: int) -> str:
    """Return this many copies of every family's quickstart, with different names."""
    return "\n---\n".join(renamed(example(f"{family}/quickstart"), n) for n in range(size) for family in QUICKSTARTS)


def renamed(text: str, number: int) -> str:
    names = sorted(set(re.findall(r"^  name: (\S+)$", text, re.MULTILINE)), key=len)
    return re.sub(
        rf"(?<=: )({'|'.join(map(re.escape, names))})$", lambda name: f"{name[0]}-{number}", text, flags=re.MULTILINE
    )


def test_many_objects_are_folded_by_resource(studio: Studio) -> None:
    studio.write(fleet(5))
    expect(studio.page.locator(".summary")).to_contain_text("112 objects")
    expect(studio.cards).to_have_count(CARDS)
    expect(studio.item("Pod")).to_have_count(0)
    assert all((box := card.bounding_box()) and box["width"] > 100 for card in studio.cards.all())
    assert violations(studio) == []

    playground = studio.cards.filter(has_text="opt-tiny-3")
    playground.locator(".card-fold").click()
    expect(studio.page.locator("#tree [role=treeitem]")).to_have_count(CARDS + 8)  # the graph has those in view
    playground.filter(has_text="Playground").locator(".card-fold").click()
    expect(studio.cards).to_have_count(CARDS)

    studio.write(f"{fleet(1)}\n---\n{example('llmkube/vllm')}")
    expect(studio.cards.filter(has_text="coder").locator(".card-hidden.absent")).to_have_text("?")
    expect(studio.item("InferenceService").filter(has_text="coder")).to_contain_text("1 absent")


def test_many_resources_stand_below_their_namespace(studio: Studio) -> None:
    """Each namespace fills the width, and a long name keeps its end."""
    names = ("team-a", "platform-inference-of-the-whole-company-production")
    services = [
        renamed(example("kserve/quickstart"), n).replace("tiny-chat", "tiny-chat-for-support") for n in range(20)
    ]
    texts = [s.replace("metadata:\n", f"metadata:\n  namespace: {names[n % 2]}\n") for n, s in enumerate(services)]
    studio.write("\n---\n".join(texts))
    expect(studio.page.locator(".namespace")).to_have_count(3)
    expect(studio.page.locator(".namespace").filter(has_text="team-a")).to_contain_text("10 resources")
    left = [box["x"] for card in studio.cards.all() if (box := card.bounding_box())]
    assert len({round(x) for x in left}) >= 3, "the columns of all namespaces stand below each other"
    last = studio.cards.filter(has_text="support-18").locator(".name > :last-child")
    expect(last).to_have_text("upport-18")
    assert last.evaluate("element => element.scrollWidth <= element.clientWidth + 1")
    assert violations(studio) == []


def test_the_keyboard_opens_and_folds_a_resource(studio: Studio) -> None:
    studio.write(fleet(5))
    studio.page.get_by_role("button", name="List").click()
    item = studio.item("Playground").filter(has_text="opt-tiny-3")
    expect(item).to_have_attribute("aria-expanded", "false")
    item.evaluate("element => element.focus()")
    studio.page.keyboard.press("ArrowRight")
    expect(item).to_have_attribute("aria-expanded", "true")
    expect(studio.item("Pod")).not_to_have_count(0)
    assert violations(studio) == []
    studio.page.keyboard.press("ArrowLeft")
    expect(studio.item("Pod")).to_have_count(0)
    expect(item).to_be_focused()


def test_filters_keep_the_resources_that_match(studio: Studio) -> None:
    page = studio.page
    studio.write(fleet(5).replace("modelName: opt-tiny-3", "modelName: other"))
    page.get_by_role("button", name="Failing only").click()
    expect(studio.item("Playground")).to_have_count(1)
    expect(studio.item("Playground")).to_have_class(re.compile(r"\bfailing\b"))
    expect(studio.item("InferenceService")).to_have_count(0)
    expect(studio.cards.filter(has_text="opt-tiny-3").first).to_be_visible()
    expect(page.locator(".summary")).to_have_text("1 of 20 resources")

    page.get_by_role("button", name="Clear").click()
    expect(studio.item("InferenceService")).to_have_count(5)
    page.get_by_label("Family of the objects").select_option("kserve")
    expect(studio.item("LLMInferenceService")).to_have_count(5)
    expect(studio.item("Playground")).to_have_count(0)
    page.get_by_role("searchbox", name="Filter objects").fill("chat-4")
    expect(studio.item("LLMInferenceService")).to_have_count(1)
    expect(studio.item("Pod")).not_to_have_count(0)
    page.get_by_role("searchbox", name="Filter objects").fill("nothing has this name")
    expect(page.locator(".empty")).to_have_text("No object is like that.")


def test_a_slow_answer_is_announced(studio: Studio) -> None:
    requests: list[Route] = []

    def hold(route: Route) -> None:
        requests.append(route)

    studio.page.route("**/api/graph", hold)
    studio.write(fleet(1))
    expect(studio.page.locator(".stage")).to_have_attribute("aria-busy", "true")
    while not requests:  # the page announces it before the browser asks for the way of the request
        studio.page.wait_for_timeout(10)
    requests[0].continue_()
    expect(studio.page.locator(".stage")).to_have_attribute("aria-busy", "false")
    expect(studio.page.locator(".summary")).to_contain_text("24 objects")


def test_many_objects_are_seen_before_the_hooks_have_answered(studio: Studio) -> None:
    page = studio.page
    requests: list[Route] = []

    def hold(route: Route) -> None:
        if (route.request.post_data_json or {})["outline"]:
            route.continue_()
        else:
            requests.append(route)

    page.route("**/api/graph", hold)
    studio.write(fleet(30))
    expect(page.locator(".summary")).to_contain_text("151 waiting")
    expect(page.locator(".stage")).to_have_attribute("aria-busy", "true")
    expect(studio.cards.filter(has_text="smollm-chat-0")).to_be_visible()
    while not requests:
        page.wait_for_timeout(10)
    requests[0].continue_()
    expect(page.locator(".summary")).to_contain_text(re.compile("^66. objects✓66. ready"))


@pytest.mark.parametrize("size", [9, 150, 1000])
def test_every_width_shows_the_graph_and_scrolls_nothing_sideways(studio: Studio, size: int) -> None:
    """The pictures are for people: they are in build/studio, by size, width and colours."""
    page = studio.page
    studio.write(example("llmkube/quickstart") if size == 9 else fleet(size // 22 + 1))
    expect(page.locator(".summary")).to_contain_text(re.compile(rf"^{str(size)[:1]}\d* objects"))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for width in (1440, 800, 390, 360):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("scrollTo(0, 0)")
        expect(studio.cards).not_to_have_count(0)
        assert fits(studio, width)
        for pill in page.locator(".summary .pill").all():
            expect(pill).to_be_in_viewport(ratio=1)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=PICTURES / f"{size}-{width}-{scheme}.png", caret="initial")


def fits(studio: Studio, width: int) -> bool:
    """Report whether the page and all its buttons are within the width."""
    boxes = [button.bounding_box() for button in studio.page.get_by_role("button").all()]
    scrolled = studio.page.evaluate("document.documentElement.scrollWidth")
    return scrolled == width and all(box["x"] + box["width"] <= width for box in boxes if box)


def test_many_findings_leave_room_for_what_is_not_among_the_files(studio: Studio) -> None:
    page = studio.page
    service = example("llmkube/quickstart").partition("---\n")[2]
    studio.write("---\n".join(service.replace("smollm", f"chat-{number}") for number in range(12)))
    expect(page.locator(".assumptions li").first).to_contain_text("not among the files")
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.locator(".findings-pane").scroll_into_view_if_needed()
        expect(page.locator(".assumptions")).to_be_in_viewport(ratio=1)
        box = page.locator(".assumptions").bounding_box()
        assert box is not None
        assert box["height"] > 25, "a line of it is not cut"


def test_every_view_fits_into_360_pixels(studio: Studio) -> None:
    page = studio.page
    page.set_viewport_size({"width": 360, "height": 900})
    expect(studio.card("Deployment")).to_be_visible()
    studio.choose("Model")
    expect(page.locator(".origins tbody tr, .origins p").first).to_be_visible()
    assert fits(studio, 360)
    studio.show("Simulate")
    page.get_by_role("checkbox", name=PULL).check()
    expect(page.locator(".parent-status.failing")).to_be_visible()
    assert fits(studio, 360)
    simulation = page.locator(".simulation")
    assert simulation.evaluate("element => element.scrollHeight - element.clientHeight") == 0, (
        "no cause is scrolled away"
    )
    studio.show("Compare")
    studio.write(example("llmkube/quickstart").replace("4096", "8192"))
    expect(page.locator(".change")).not_to_have_count(0)
    assert fits(studio, 360)
    page.get_by_role("button", name="Examples").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert fits(studio, 360)


def test_a_short_window_shows_the_chosen_object_and_its_values(studio: Studio) -> None:
    """As a page of 1440 pixels that is zoomed to 200 %."""
    page = studio.page
    page.set_viewport_size({"width": 720, "height": 450})
    expect(studio.card("Deployment")).to_be_visible()
    studio.choose("Deployment")
    expect(page.locator(".canvas")).to_have_attribute("title", "Deployment smollm-chat")
    expect(page.locator(".origins tbody tr").first).to_be_in_viewport()
    expect(studio.card("Deployment")).to_have_class(re.compile(r"\bselected\b"))
    card, graph = (locator.bounding_box() for locator in (studio.card("Deployment"), page.locator(".graph")))
    assert card is not None
    assert graph is not None
    assert graph["y"] <= card["y"]
    assert card["y"] + card["height"] <= graph["y"] + graph["height"]


@pytest.mark.parametrize("width", [1440, 800, 360])
def test_tab_follows_what_one_sees(studio: Studio, width: int) -> None:
    """Below 900 pixels the graph is above the editor, and before it in the order of Tab."""
    page = studio.page
    expect(studio.card("Deployment")).to_be_visible()
    page.set_viewport_size({"width": width, "height": 900})
    first, second = ("#main", ".editor-pane") if width < 900 else (".editor-pane", "#main")
    above, below = (page.locator(pane).bounding_box() for pane in (first, second))
    assert above is not None
    assert below is not None
    assert (above["y"], above["x"]) < (below["y"], below["x"])
    page.get_by_role("button", name="Keyboard shortcuts").focus()
    page.keyboard.press("Tab")
    expect(page.locator(f"{first} :focus")).to_have_count(1)
