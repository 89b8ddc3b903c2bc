"""Many rows without a key, deleted or updated at once: other writes to them are reported, as for single rows."""

import pytest

from cdc.config.profile import load
from cdc.consumer.follower.row_counts import RowCounts
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.packets import Mismatch, Statement, check_counts
from cdc.consumer.plan.planner import Change, Step
from cdc.consumer.plan.statements import statements
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri
from tests.checks.binlog import position
from tests.harness.topic import Stage, number, text

pytestmark = pytest.mark.integration

COLUMNS = ["n", "s"]


def image(value: int) -> list[object]:
    return [number(value), text("same")]


def test_the_followers_binlog_has_rows_only(stage: Stage) -> None:
    path = stage.create_table("t", "(n INT, s VARCHAR(10))")
    stage.topic.send([stage.topic.add(path, COLUMNS, *map(image, [*range(7), *range(7)]))])
    stage.apply()
    file, offset = position(stage.follower)
    stage.topic.send([stage.topic.delete(path, COLUMNS, *map(image, range(6)))])
    assert "row by row" not in stage.apply()
    events = stage.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset}")
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
        check_counts(packet, session.run([statement.sql for statement in packet]))
    except Mismatch:
        return False
    return True
