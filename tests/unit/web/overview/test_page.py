"""The view of the first page: stages with their states and figures, copies, followers; and how it is rendered."""

from dataclasses import replace

import pytest

from cdc.model.position import Position
from cdc.producer.copy.state import Pending
from cdc.web.overview.answers import Sample, StreamAnswers, bytes_between, sample
from cdc.web.overview.page import Stage, stream_page
from cdc.web.overview.plots import plots
from cdc.web.rendering import render
from cdc.web.sources import Answer
from tests.unit.web.overview.streams import FOLLOWER_NAME, NOW, follower, leader, program, status, stream

PARTS = ("path", "waits", "plots", "copies", "followers")


def facts(stage: Stage) -> dict[str, str]:
    return {fact.label: fact.text for fact in stage.facts}


def states(given: StreamAnswers) -> list[str]:
    page = stream_page(given, number=1, now=NOW)
    stages = [
        page.leader,
        page.producer,
        page.kafka,
        *(part for each in page.branches for part in (each.consumer, each.follower)),
    ]
    return [each.state for each in stages]


def html(given: StreamAnswers) -> str:
    page = stream_page(given, number=1, now=NOW)
    return "".join(render(f"{part}.html", page=page) for part in PARTS)


def test_a_healthy_stream() -> None:
    page = stream_page(stream(), number=1, now=NOW)
    assert states(stream()) == ["ok"] * 5
    assert facts(page.leader) == {"Ends at": "binlog.000002:900", "Not in Kafka yet": "0 bytes", "Version": "8.4.0"}
    assert facts(page.producer) == {"Rate": "–", "Behind": "0 s", "Wrote": "2.0 s ago"}
    assert facts(page.kafka) == {"Records": "100", "Position": "binlog.000002:900", "Partitions": "1"}
    assert facts(page.branches[0].consumer) == {"Rate": "–", "Behind": "0 s", "Waiting": "0"}
    assert facts(page.branches[0].follower)["Applied"] == "99"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (stream(error="x"), ["ok", "unknown", "bad", "ok", "ok"]),
        (stream(written_at=NOW - 181), ["ok", "bad", "ok", "ok", "ok"]),
        (stream(leader(error="x"), follower(error="x")), ["bad", "ok", "ok", "unknown", "bad"]),
        (stream(leader(), follower(status(consumer=None))), ["ok", "ok", "ok", "bad", "ok"]),
        (stream(leader(), follower(status(paused=True))), ["ok", "ok", "ok", "waits", "ok"]),
        (stream(leader(given=program(error="x")), follower(given=program(failing={"a": "b"}, consumer_waiting=1))),
         ["ok", "bad", "ok", "waits", "ok"]),
        (stream(leader(given=program()), follower(given=program(failing={"a": "b"}))), ["ok", "ok", "ok", "bad", "ok"]),
        (stream(follower()), ["unknown", "ok", "ok", "ok", "ok"]),
        (stream(leader(), places={FOLLOWER_NAME: 90}), ["ok", "ok", "ok", "unknown", "unknown"]),
    ],
)  # fmt: skip
def test_states(given: StreamAnswers, expected: list[str]) -> None:
    assert states(given) == expected


def test_a_follower_without_a_profile_is_shown_as_far_as_kafka_knows() -> None:
    [branch] = stream_page(stream(leader(), places={FOLLOWER_NAME: 90}), number=1, now=NOW).branches
    assert facts(branch.consumer)["Waiting"] == "9" and facts(branch.follower) == {"Applied": "90"}


def test_rates_are_those_of_the_newest_seconds() -> None:
    samples = (
        Sample(NOW - 600, 0, {}),
        Sample(NOW - 10, 80, {FOLLOWER_NAME: 19}),
        Sample(NOW, 100, {FOLLOWER_NAME: 99}),
    )
    page = stream_page(stream(samples=samples), number=1, now=NOW)
    assert facts(page.producer)["Rate"] == "2.0/s" and page.producer.flows
    assert facts(page.branches[0].consumer)["Rate"] == "8.0/s"


def test_the_way_through_several_binlog_files() -> None:
    logs = [("b.1", 100), ("b.2", 200), ("b.3", 50)]
    assert bytes_between(Position("b.1", 90), Position("b.3", 5), logs) == 215
    assert bytes_between(Position("b.3", 5), Position("b.3", 5), []) == 0
    assert bytes_between(Position("b.0", 5), Position("b.3", 5), logs) is None


def test_what_a_source_no_longer_answers_is_not_drawn() -> None:
    assert sample(stream(), now=NOW) == Sample(NOW, 100, {FOLLOWER_NAME: 99}, {FOLLOWER_NAME: 0.0})
    assert sample(stream(error="x"), now=NOW).written is None
    assert sample(stream(leader(), follower(error="x")), now=NOW).late == {}


def test_each_follower_is_in_the_legends_before_its_first_figures() -> None:
    assert [[line.newest for line in plot.series] for plot in plots([], now=NOW, followers=["f:1"])] == [
        ["–", "–"], ["–"], ["–"],
    ]  # fmt: skip


def test_a_gap_in_a_line_stays_a_gap() -> None:
    samples = [Sample(NOW - 3000 + 10 * n, None if 100 < n < 200 else n, {}) for n in range(300)]
    [line] = plots(samples, now=NOW)[0].series
    assert len(line.paths) == 2 and line.newest == "0.1/s"


def test_a_thousand_points_make_few() -> None:
    samples = [Sample(NOW - n, 5 * (4000 - n), {"f": 4 * (4000 - n)}) for n in range(3999, -1, -1)]
    rate, waiting, _ = plots(samples, now=NOW)
    assert [each.newest for each in rate.series] == ["5.0/s", "4.0/s"] and rate.top == "5.0/s"
    assert waiting.series[0].newest == "3,999" and waiting.top == "5,000"
    assert all(path.count("L") <= 180 for each in (rate, waiting) for line in each.series for path in line.paths)


def test_ten_thousand_tables_to_copy() -> None:
    pending = Pending(again=tuple(("db", f"t{number}") for number in range(10_000)), rows=50)
    given = stream(
        leader(given=program(producer_copying_rows_estimated=200, producer_copying_seconds_left=61)),
        follower(),
        pending=pending,
    )
    page = stream_page(given, number=1, now=NOW)
    assert (page.copies[0].says, page.copies[0].share) == ("50 of about 200 rows, 1 min 1 s left", 25.0)
    assert len(page.copies) == 20 and page.more_copies == 9_980
    assert len(html(given)) < 20_000


def test_names_and_reasons_are_text() -> None:
    hostile = "<script>alert(1)</script>\"'\u202e\x1b[31m"
    pending = Pending(again=((hostile, hostile),))
    given = stream(leader(error=hostile), follower(error=hostile), pending=pending, error=hostile, producer=hostile)
    found = html(replace(given, resource=hostile, topic=hostile))
    assert "<script" not in found and "\u202e" not in found and "\x1b" not in found
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&#34;&#39;\\u202e␛[31m" in found


def test_before_any_answer() -> None:
    empty = [replace(each, server=Answer()) for each in (leader(), follower())]
    given = replace(stream(*empty), kafka=Answer())
    assert states(given) == ["unknown"] * 5
    assert "Kafka has not answered yet." in html(given)
