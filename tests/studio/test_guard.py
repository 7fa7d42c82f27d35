"""Only the page may send requests, and it may load nothing from other hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.studio.routes import create_app
from tests.studio.conftest import AUTHORITY, client_of

HERE = f"http://{AUTHORITY}"
WRONG = {"name": "a", "text": "{apiVersion: llmaz.io/v1alpha1, kind: OpenModel, metadata: {name: a}, spec: {x: 1}}"}
REFUSED = {
    "another host, as after DNS rebinding": ({"host": "evil.example"}, "/token/api/session", 421),
    "another port": ({"host": "127.0.0.1:80"}, "/token/api/session", 421),
    "another origin": ({"origin": "http://evil.example"}, "/token/api/session", 403),
    "an opaque origin": ({"origin": "null"}, "/token/api/session", 403),
    "no token": ({}, "/api/session", 403),
    "a wrong token": ({}, "/tokem/api/session", 403),
    "the beginning of the token": ({}, "/tok/api/session", 403),
    "a token that is no ASCII": ({}, "/tök€n/api/session", 403),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=list(REFUSED))
def test_a_foreign_request_is_refused_in_words(client: TestClient, case: tuple[dict[str, str], str, int]) -> None:
    headers, path, status = case
    response = client.get(f"{HERE}{path}", headers=headers)
    assert response.status_code == status
    assert response.headers["content-type"].startswith("text/plain")
    assert "token" not in response.headers


def test_the_page_itself_is_answered(client: TestClient) -> None:
    assert client.get("api/session", headers={"origin": HERE}).json()["live"] is False


@pytest.mark.parametrize("path", ["", "api/session", "api/nothing", "nothing.js", "/elsewhere"])
def test_every_answer_is_kept_to_itself(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert "http" not in headers["content-security-policy"]


@pytest.fixture
def built(tmp_path: Path) -> TestClient:
    static = tmp_path / "static"
    static.mkdir()
    (static / "index.html").write_text("<title>The page</title>")
    (static / "studio.js").write_text("void 0")
    (tmp_path / "secret.txt").write_text("not for the page")
    return client_of(create_app(static=static))


def test_files_of_the_page_are_served_and_no_others(built: TestClient) -> None:
    assert built.get("").text == "<title>The page</title>"
    script = built.get("studio.js")
    assert script.headers["content-type"].startswith("text/javascript")
    for path in ("../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "//secret.txt"):
        answer = built.get(f"{HERE}/token/{path}")
        assert answer.status_code in (403, 404)
        assert "not for the page" not in answer.text


def test_without_a_page_it_says_how_to_build_one(tmp_path: Path) -> None:
    answer = client_of(create_app(static=tmp_path / "none")).get("")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "text/plain; charset=utf-8")
    assert "make studio" in answer.text


def test_the_types_are_in_the_openapi_document(client: TestClient) -> None:
    document = client.get("api/openapi.json").json()
    assert {"/api/check", "/api/graph", "/api/origins", "/api/simulate", "/api/compare"} <= document["paths"].keys()
    assert {"PlacedFinding", "Graph", "ValueOrigin", "Simulation", "Comparison"} <= document["components"][
        "schemas"
    ].keys()
    assert not [path for path in document["paths"] if path.startswith("/api/live")]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("graph", {"documents": 3}, 422, "body.documents: Input should be a valid list"),
        ("graph", {"documents": [], "settings": {"MODELHOOKS_CLUSTER_DOMIAN": "x"}}, 422, "did you mean"),
        ("graph", {"documents": [], "settings": {"HOME": "x"}}, 422, "HOME is not a setting"),
        ("graph", {"documents": [], "settings": {"MODELHOOKS_WATCH_PODS": "perhaps"}}, 422, "MODELHOOKS_WATCH_PODS"),
        ("simulate", {"documents": [], "scenes": ["flood"]}, 404, "image-pull-fails"),
        ("origins", {"documents": [], "node": "Pod.v1 default/x"}, 404, "Pod.v1 default/x"),
        ("compare", {"before": [], "after": [WRONG]}, 422, "an object with errors changes nothing"),
        ("check", {"documents": [], "unknown": 1}, 422, "unknown"),
    ],
)
def test_a_mistake_in_a_request_is_answered_in_words(
    client: TestClient, path: str, body: object, status: int, words: str
) -> None:
    response = client.post(f"api/{path}", json=body)
    assert (response.status_code, response.headers["content-type"]) == (status, "text/plain; charset=utf-8")
    assert words in response.text
