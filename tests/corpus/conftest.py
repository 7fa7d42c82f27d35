"""One running service for the whole corpus. After each case it must still answer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from app.desk.cluster.simulate import Cluster
from tests.corpus import requests
from tests.corpus.kinds import cluster_of_all
from tests.service import NEVER, Service, running


@pytest.fixture(scope="session")
def process() -> Iterator[Service]:
    with running() as started:
        yield started


@pytest.fixture
def service(process: Service) -> Iterator[Service]:
    """The service. After each test, it must be alive and answer a valid review and a valid sync."""
    begin = time.monotonic()
    yield process
    assert time.monotonic() - begin < NEVER
    assert process.process.poll() is None
    assert requests.is_allowed(process.post(requests.REVIEW, requests.review())) == []
    answer = process.post(requests.SYNC, requests.sync())
    assert (answer.status, [child["kind"] for child in answer.json["children"]]) == (200, ["Deployment", "Service"])


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """A cluster that tests only read."""
    return cluster_of_all()
