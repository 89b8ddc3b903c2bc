"""Many rows without a key, deleted or updated at once: other writes to them are reported, as for single rows."""

from pathlib import Path

import pytest

from cdc.config.profile import load
from cdc.consumer.apply.pending_batch import Mismatch, check
from cdc.consumer.follower.row_counts import RowCounts
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Change, Step
from cdc.consumer.plan.statements import statements
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri
from cdc.sandbox.server.kafka import Kafka
from tests.harness.programs import refused, write_profile
from tests.harness.topic import Stage, number, text

pytestmark = pytest.mark.integration

COLUMNS = ["n", "s"]


def image(value: int) -> list[object]:
    return [number(value), text("same")]


def test_a_missing_row_is_a_conflict_even_if_another_is_there_too_often(
    tmp_path: Path, stage: Stage, kafka: Kafka
) -> None:
    path = stage.create_table("t", "(n INT, s VARCHAR(10))")
    stage.topic.send([stage.topic.add(path, COLUMNS, *map(image, range(7)))])
    stage.apply()
    stage.execute("DELETE FROM t WHERE n = 3", "INSERT INTO t VALUES (4, 'same')")
    stage.topic.send([stage.topic.delete(path, COLUMNS, *map(image, range(5)))])
    stop = write_profile(
        tmp_path, stage.follower, kafka, name="stop", topic=stage.name, resource=stage.name,
        consumer={"on_conflict": "stop"},
    )  # fmt: skip
    line = refused("cdc-consumer", stop, "--until-current", status=3)
    assert f"conflict: Delete of n=3, s='same' in flv://{stage.name}/{path}: the row is not there" in line
    log = stage.apply()
    assert "conflicts=1" in log
    assert "key=\"n=3, s='same'\"" in log
    assert stage.execute("SELECT n FROM t ORDER BY n") == [(4,), (5,), (6,)]


def test_an_enums_error_value_is_not_its_empty_member(stage: Stage) -> None:
    path = stage.create_table("t", "(n INT, s ENUM('a', ''))")
    member, error = ([[number(n), {"Enum": value}] for n in range(6)] for value in ("", 0))
    stage.topic.send([stage.topic.add(path, COLUMNS, *member, *error)])
    stage.apply()
    stage.topic.send([stage.topic.delete(path, COLUMNS, *member[:5], *error[3:])])
    log = stage.apply()
    assert "one by one" not in log and "row by row" not in log
    assert stage.execute("SELECT n, s + 0 FROM t ORDER BY n") == [(0, 0), (1, 0), (2, 0), (5, 2)]


def test_a_document_with_a_date_that_the_leaders_modes_do_not_allow(stage: Stage) -> None:
    """The table computes values, so its rows are written in the leader's modes, which their literals must outlive."""
    path = stage.create_table("t", "(n INT, j JSON, g INT AS (n + 1) STORED)")
    none = {"year": 0, "month": 0, "day": 0}
    clock = {"hour": 0, "minute": 0, "second": 0, "subsecond": 0}
    members = [{"Date": none}, {"DateTime": none | clock}, {"Date": none | {"year": 2001}}]
    document = {"JsonTyped": {"array": members}}
    columns, images = ["n", "j", "g"], [[number(n), document, number(n + 1)] for n in range(4)]
    stage.topic.send([stage.topic.add(path, columns, *images[:3], sql_mode="")])
    stage.topic.send([stage.topic.update(path, columns, (images[0], images[3]))])
    stage.topic.send([stage.topic.delete(path, columns, images[1])])
    assert "conflicts=0" in stage.apply()
    shown = '["0000-00-00", "0000-00-00 00:00:00.000000", "2001-00-00"]'
    assert stage.execute("SELECT n, CAST(j AS CHAR), g FROM t ORDER BY n") == [(2, shown, 3), (3, shown, 4)]
    stage.topic.send([stage.topic.delete(path, columns, images[1], images[2])])
    assert "conflicts=1" in stage.apply()
    assert stage.execute("SELECT n FROM t") == [(3,)]


def test_the_followers_binlog_has_rows_only(stage: Stage) -> None:
    path = stage.create_table("t", "(n INT, s VARCHAR(10))")
    stage.topic.send([stage.topic.add(path, COLUMNS, *map(image, [*range(7), *range(7)]))])
    stage.apply()
    file, position = stage.execute("SHOW BINARY LOG STATUS")[0][:2]
    stage.topic.send([stage.topic.delete(path, COLUMNS, *map(image, range(6)))])
    assert "row by row" not in stage.apply()
    events = stage.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {position}")
    found = {(str(kind), str(info).split(" ")[0] if kind == "Query" else "") for _, _, kind, _, _, info in events}
    assert found <= {
        (kind, "") for kind in ("Gtid", "Table_map", "Delete_rows", "Write_rows", "Update_rows", "Xid")
    } | {("Query", "BEGIN")}


def test_what_is_written_after_the_rows_were_counted_shows(stage: Stage) -> None:
    stage.apply()
    stage.execute("CREATE TABLE t (n INT, s VARCHAR(10))")
    uri = Uri(stage.name, stage.name, "t")
    record = Record(uri, 7, Position("b", 4), "uuid:1", 0, True, 0, "Delete", columns=tuple(COLUMNS))
    step = Step("Remove", [Change(record, Row(image(n), None)) for n in range(5)])
    with Session(load(stage.profile).database) as session:
        session.connect()
        # In the first order the rows that go are the first ones, so that they need not be counted.
        for numbers in ([*range(7), 6], [6, *range(6, -1, -1)]):
            rows = ",".join(f"({n},'same')" for n in numbers)
            stage.execute("DELETE FROM t", f"INSERT INTO t VALUES {rows}")
            for writes, right in ((["SELECT 1"], True), (["UPDATE t SET n = 2 WHERE n = 1"], False)):
                made = RowCounts(session).prepared(
                    [step], schema=lambda _: TableSchema(frozenset(COLUMNS)), size=10_000
                )
                session.commit()
                stage.execute(*writes)
                assert passes(session, list(statements(made, generated=lambda _: frozenset()))) is right
                session.reset()
        # What no packet holds is not asked.
        session.max_packet = 100
        assert RowCounts(session).prepared([step], schema=lambda _: TableSchema(frozenset(COLUMNS)), size=90) == [step]


def passes(session: Session, packet: list[Statement]) -> bool:
    try:
        check(packet, session.run([statement.sql for statement in packet]))
    except Mismatch:
        return False
    return True
