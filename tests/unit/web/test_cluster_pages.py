"""The pages of a cluster: large lists come in parts, what does not answer is named, and no name becomes markup."""

from typing import Any

import pytest

from cdc.browse.cluster import Broker, ClusterSummary, Group, Groups, Member, PartitionSummary, ReadPlace, TopicSummary
from cdc.web.rendering import render
from cdc.web.topic_pages import Cluster, Pages

HOSTILE = "<b>&'\""
PARTITIONS = {0: PartitionSummary(5, 8, 1, (1, 2), (1, 2)), 1: PartitionSummary(None, None, -1, (1, 2), (1,))}
TOPIC = TopicSummary(HOSTILE, PARTITIONS)
READER = Group(HOSTILE, "stable", (Member(HOSTILE, "h", 2),), (ReadPlace(HOSTILE, 0, 6, 8, HOSTILE),))


def shown(template: str, **values: Any) -> str:
    return render(template, tab="topics", streams=[], report=None, number=1, **values)


def test_topics_come_page_by_page_with_the_brokers_that_lead_them() -> None:
    brokers = Broker(1, "h:9092", 400, True), Broker(2, HOSTILE, 0, False)
    summary = ClusterSummary(brokers, (TOPIC,) * 100, 301, 10_000, 20_000, 1)
    values = {"problems": [], "wanted": HOSTILE, "clusters": [(1, Cluster("h", {}, {}), summary)]}
    page = shown("topics.html", pages=Pages(100, 100), **values)
    assert "101 to 200 of 301" in page and "begin=0" in page and "begin=200" in page
    for text in ("10,000", "Broker 1, controller", "1 partition does not answer", "1 not in sync", "leads 400"):
        assert text in page
    assert "<b>" not in page
    assert "begin=400" not in shown("topics.html", pages=Pages(300, 100), **values)


def test_a_partition_whose_leader_is_away_is_named() -> None:
    page = shown("partitions.html", topic=HOSTILE, known="", settings={HOSTILE: HOSTILE}, problems=[], summary=TOPIC,
                 readers=Groups((READER,), 201), asked_groups=200, pages=Pages(0, 100))  # fmt: skip
    assert "its leader does not answer" in page and "3 offsets in use" in page and "<b>" not in page
    assert 'data-name="behind by">2<' in page and "Only the first 200 of 201 groups were asked" in page
    assert (TOPIC.messages, TOPIC.silent, TOPIC.lacking, TOPIC.replicas) == (3, 1, 1, 2)


@pytest.mark.parametrize(
    ("place", "lag"), [(None, None), ((6, 8), 2), ((6, None), None), ((9, 8), 0)],
    ids=["nothing committed", "behind", "the end is unknown", "beyond the end"],
)  # fmt: skip
def test_the_lag_of_a_group(place: tuple[int, int | None] | None, lag: int | None) -> None:
    known = ReadPlace("t", 1, 3, 3, "")
    places = (known, ReadPlace("t", 0, place[0], place[1], "")) if place else ()
    assert Group("g", "empty", places=places).lag == lag


def test_groups_and_one_that_is_refused() -> None:
    refused = Group("other", "dead", error=HOSTILE)
    page = shown("groups.html", servers="h", found=Groups((READER, refused), 60), wanted="", pages=Pages(50, 50))
    assert "51 to 60 of 60" in page and "&lt;b&gt;" in page and "<b>" not in page
    page = shown("group.html", name=HOSTILE, group=READER, pages=Pages(0, 100))
    assert "2 offsets behind" in page and "<b>" not in page
    assert "There is no such group" in shown("group.html", name="x", group=None, pages=Pages(0, 100))
