"""HTTP-6.5 for model sources: addresses of llmaz and KServe, archives, links; and the times of HTTP-S19."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.desk.cluster.simulate import Cluster
from app.kube.base import Json
from tests.corpus.contained import containers, is_contained, shells, texts
from tests.corpus.families import (
    LLM,
    OPEN_MODEL,
    SERVICE,
    is_refused_everywhere,
    request,
    reviewing,
    running,
    syncing,
    valid,
)
from tests.corpus.requests import REVIEW_MODEL, SYNC, causes, is_allowed, model, ready, review, spec_with, sync, verdict
from tests.corpus.requests import service as inference_service
from tests.service import Service


@dataclass(frozen=True)
class Case:
    id: str
    kind: str
    spec: Json
    field: str


URI = "spec.model.uri"
ADDRESSES = {
    "X02 claim elsewhere": "pvc://../x",
    "X02 no claim": "pvc:///x",
    "X02 no name of a claim": "pvc://Other_Claim/x",
    "X35 outside": "s3://bucket/../x",
    "X35 outside at the end": "s3://bucket/x/..",
    "X35 no bucket": "s3:///x",
    "X35 dots for a bucket": "s3://../x",
    "X35 address for a bucket": "s3://192.168.0.1/x",
    "X35 metadata address for a bucket": "s3://169.254.169.254/x",
    "X35 a port": "s3://bucket:9000/x",
    "X36 nothing": "oci://",
    "X36 no host": "oci:///x",
    "X36 short digest": "oci://r.example/i@sha256:" + "a" * 63,
    "X36 no digest": "oci://r.example/i@sha256:zz",
    "X36 other algorithm": "oci://r.example/i@md5:" + "a" * 32,
    "X36 outside": "oci://r.example/../i",
    "X34 outside": "hf://../../x",
    "X45 outside the claim": "pvc://claim/a/../../x",
    "X45 absolute": "pvc://claim//etc/x",
}
FILES = ["../../x", "/abs", "a/../../b", "..", ""]
TIMES = {
    "malformed": "yesterday",
    "empty": "",
    "month 13": "2025-13-01T00:00:00Z",
    "February 30": "2025-02-30T00:00:00Z",
    "hour 24": "2025-01-31T24:00:00Z",
    "leap second": "2016-12-31T23:59:60Z",
    "year 10000": "10000-01-01T00:00:00Z",
    "no zone": "2025-01-31T12:00:00",
    "zone of 25 hours": "2025-01-31T12:00:00+25:00",
    "blank": "2025-01-31 12:00:00Z",
    "week": "2025-W05-5T12:00:00Z",
    "no separators": "20250131T120000Z",
    "other digits": "\u0662025-01-31T12:00:00Z",
    "line end": "2025-01-31T12:00:00Z\n",
}


def open_model(**over: object) -> Json:
    return {**valid(OPEN_MODEL), **over}


def hub_file(name: str) -> Json:
    return {"modelHub": {"modelID": "organisation/model", "filename": name}}


DENIED = [
    *(Case(id_, LLM, {"model": {"uri": uri}}, URI) for id_, uri in ADDRESSES.items()),
    *(
        Case(f"X35 {uri}", OPEN_MODEL, open_model(source={"uri": uri}), "spec.source.uri")
        for uri in ("s3://b/../x", "gcs://b/a/../../x", "oss://b.h.example/../x", "s3:///x", "host:///models/../etc")
    ),
    *(
        Case(f"X45 {name!r}", OPEN_MODEL, open_model(source=hub_file(name)), "spec.source.modelHub.filename")
        for name in FILES
    ),
    *(Case(f"S19 {id_}", OPEN_MODEL, open_model(createdAt=text), "spec.createdAt") for id_, text in TIMES.items()),
]


@pytest.mark.parametrize("case", DENIED, ids=[f"{case.id} {case.kind}" for case in DENIED])
def test_rejects_an_invalid_source_at_its_field(service: Service, cluster: Cluster, case: Case) -> None:
    """Sync keeps the children."""
    is_refused_everywhere(service, cluster, running(cluster, case.kind, case.spec), case.field, "Invalid")


def test_accepts_rfc3339_times(service: Service, cluster: Cluster) -> None:
    """HTTP-S19: fractions and any zone are accepted."""
    for text in ("2025-01-31T12:00:00Z", "2025-01-31T12:00:00.123456789+05:30", "9999-12-31T23:59:59-01:00"):
        document = running(cluster, OPEN_MODEL, open_model(createdAt=text))
        assert is_allowed(reviewing(service, document)) == []
        assert ready(syncing(service, request(cluster, document)))["status"] == "True"


def test_never_repeats_a_password_of_an_address(service: Service, cluster: Cluster) -> None:
    """Neither admission nor the status repeats it, for any mistake in the address (HTTP-X32)."""
    for uri in ("s3://user:pass-word@b/x", "https://user:pass-word@h.example/x", "oci://user:pass-word@r.example:x/y"):
        document = running(cluster, LLM, {"model": {"uri": uri}})
        reviewed, synced = reviewing(service, document), syncing(service, request(cluster, document))
        assert causes(verdict(reviewed)) == [(URI, "Invalid")]
        assert b"pass-word" not in reviewed.body
        assert b"pass-word" not in synced.body
    hub = running(cluster, OPEN_MODEL, open_model(source={"uri": "s3://user:pass-word@b/../x"}))
    assert b"pass-word" not in reviewing(service, hub).body + syncing(service, request(cluster, hub)).body


LITERAL: dict[str, str] = {
    "X35 capitals, as in a sample": "s3://BUCKET/x",
    "X35 characters of a shell": "s3://bucket/$(id)&&x",
    "X36 digest": "oci://r.example/i@sha256:" + "a" * 64,
    "X36 tag and port": "oci://r.example:5000/a/i:tag",
    "X49 archive": "s3://bucket/x.tar.gz",
}


@pytest.mark.parametrize("uri", LITERAL.values(), ids=list(LITERAL))
def test_addresses_that_stay_data(service: Service, cluster: Cluster, uri: str) -> None:
    """The address is one argument of the downloader, or one image; whether it exists is for the store to decide."""
    document = running(cluster, LLM, {"model": {"uri": uri}})
    is_allowed(reviewing(service, document))
    children = is_contained(syncing(service, request(cluster, document)))
    image = uri.removeprefix("oci://")
    assert any(uri in (c.get("args") or []) or c["image"] == image for c in containers(children))
    assert not any(image in program for program in shells(children))


ARCHIVES = ["https://h.example/x.tar.gz", "https://h.example/x.TGZ?y=1", "pvc://claim/x.gguf.zst"]


@pytest.mark.parametrize("source", ARCHIVES)
def test_warns_of_archives(service: Service, source: str) -> None:
    """LLMKube's API accepts any file, so there is a warning at apply, before the engine fails to read it (HTTP-X49)."""
    warnings = is_allowed(service.post(REVIEW_MODEL, review(model({"source": source}))))
    assert any("nothing unpacks it" in text for text in warnings)


def test_does_not_warn_of_other_files(service: Service) -> None:
    """An archive's name elsewhere in the address has no effect (HTTP-X49)."""
    for source in ("https://h.example/x.tar/m.gguf", "https://h.example/m.gguf?from=x.zip", "a/b.zip"):
        assert not is_allowed(service.post(REVIEW_MODEL, review(model({"source": source}))))


LINK = "-> /etc"


def test_passes_a_name_that_looks_like_a_link(service: Service, cluster: Cluster) -> None:
    """llmaz: the loader's variable and the engine's path are below the models' directory (HTTP-X50)."""
    source = hub_file(LINK)
    assert is_allowed(reviewing(service, running(cluster, OPEN_MODEL, open_model(source=source)))) == []
    sent = request(cluster, running(cluster, SERVICE, valid(SERVICE)))
    sent["related"]["OpenModel.llmaz.io/v1alpha1"]["opt"]["spec"]["source"] = source
    children = is_contained(syncing(service, sent))
    variables = [variable for container in containers(children) for variable in container.get("env", [])]
    assert [variable["value"] for variable in variables if LINK in variable.get("value", "")] == [LINK]
    assert not any(LINK in program for program in shells(children))


def test_passes_a_name_below_a_claims_mount(service: Service) -> None:
    """LLMKube: it is one argument, a path below the claim's mount (HTTP-X50)."""
    source = f"pvc://claim/{LINK}"
    assert is_allowed(service.post(REVIEW_MODEL, review(model({"source": source})))) == []
    stored = model({"source": source}, status={"phase": "Ready", "path": f"/model-source/{LINK}"})
    related = {"Model.inference.llmkube.dev/v1alpha1": {"ns/m": stored}}
    document = inference_service(spec_with(runtime="llamacpp"))
    children = is_contained(service.post(SYNC, sync(document, related=related, children={"Deployment.apps/v1": {}})))
    mentioned = [text for text in texts(children) if LINK in text]
    assert mentioned
    assert all(text == f"/model-source/{LINK}" for text in mentioned), mentioned
