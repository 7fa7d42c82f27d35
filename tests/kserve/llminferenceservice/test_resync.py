"""An answer is computed again in time to report a child that does not appear."""

from __future__ import annotations

from app.workload.readiness.waiting import RESYNC
from tests.kserve.objects import Cluster, service


def test_an_answer_with_a_child_that_is_absent_is_followed_by_another() -> None:
    assert Cluster(service()).sync()["resyncAfterSeconds"] == RESYNC


def test_an_answer_whose_children_are_all_there_is_the_last_one() -> None:
    cluster = Cluster(service())
    assert "resyncAfterSeconds" not in cluster.settle()


def test_a_child_that_is_gone_again_is_waited_for() -> None:
    cluster = Cluster(service())
    cluster.settle()
    cluster.children.pop()
    assert cluster.sync()["resyncAfterSeconds"] == RESYNC
