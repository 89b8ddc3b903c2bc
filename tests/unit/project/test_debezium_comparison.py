"""The comparison with Debezium: its table, and what it counts."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bench.debezium.all_types import last_topic
from bench.debezium.connect import innermost
from bench.debezium.kills import Seen
from bench.debezium.pipelines import Sink, topic_name
from bench.debezium.table import NOT_RUN, Row, heading, line, percentile

PIPELINES = ("cdc", "Debezium")
_TRACE = """org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception.
\tat org.apache.kafka.connect.runtime.WorkerSinkTask.poll(WorkerSinkTask.java:360)
Caused by: org.apache.kafka.connect.errors.ConnectException: JDBC sink connector failure
\t... 11 more
Caused by: java.sql.SQLException: Could not find table: a.t
\tat io.debezium.connector.jdbc.JdbcSinkConnectorTask.put(JdbcSinkConnectorTask.java:1)
"""


def test_a_table_in_markdown() -> None:
    assert heading(PIPELINES) == ["|  | cdc | Debezium |", "|---|---|---|"]
    assert line(Row("equal", {"Debezium": "2 of 3", "cdc": "3"}), PIPELINES) == "| equal | 3 | 2 of 3 |"


def test_what_was_not_asked_is_not_guessed() -> None:
    assert line(Row("lag", {"cdc": "9"}), PIPELINES) == f"| lag | 9 | {NOT_RUN} |"


@given(st.text())
def test_an_answer_stays_in_its_cell(answer: str) -> None:
    shown = line(Row("q", {"cdc": answer, "Debezium": ""}), PIPELINES)
    assert shown.replace("\\|", "").count("|") == 4
    assert "\n" not in shown


def test_percentiles() -> None:
    assert percentile([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile(map(float, range(100)), 99) == 99.0
    assert percentile([5.0], 99) == 5.0


def test_states_with_a_part_of_a_transaction_and_states_that_go_back() -> None:
    seen = Seen()
    for state in ((0, 0, 0), (1, 1, 1), (2, 1, 1), (2, 2, 2), (1, 2, 2), (2, 2, 2)):
        seen.add(state)
    assert (seen.states, seen.parts, seen.older, seen.newest) == (6, 2, 1, 2)


def test_the_cause_of_a_task_that_failed() -> None:
    assert innermost(_TRACE) == "SQLException: Could not find table: a.t"
    assert innermost("java.lang.NullPointerException\n\tat A.b(A.java:1)\n") == "NullPointerException"


def test_names_in_the_names_of_topics() -> None:
    assert topic_name("cdc schema-with.odd$chars") == "cdc_schema-with.odd_chars"
    assert topic_name("схема") == "_____"


def test_the_table_at_which_a_sink_stops_is_left_out() -> None:
    written = "[task-thread-types-sink{}-0] TRACE Sink - Processing SinkRecord{{x=1, originalTopic=types.a.{}, y=2}}\n"
    log = written.format(1, "t") + written.format(1, "u.v") + written.format(11, "w") + "[task-thread-types-sink1-0]\n"
    assert last_topic(log, "types-sink1") == "types.a.u.v"
    names = ("t", "u.v", "u")
    tables = Sink("a", "(t|u\\.v|u)").without("u.v").without("t").tables
    assert [name for name in names if re.fullmatch(tables, name)] == ["u"]
