"""After which statements the next one may run without a reset of the connection."""

import json

import pytest

from cdc.consumer.follower.statement_connection import leaves_nothing
from cdc.model.record import Record


def record(text: str, *actions: str) -> Record:
    affects = [{"action": action, "uri": "flv://leader/d/t"} for action in actions]
    body = {
        "uri": "flv://leader/d", "sequence": 0, "bn_file": {"fileName": "b.1", "offset": 4}, "columns": [],
        "transaction": {"id": "u:1", "index": 0, "last": True, "ts_us": 1},
        "operation": {"Query": text}, "affects": affects, "context": {},
    }  # fmt: skip
    return Record.parse(json.dumps(body).encode(), where="here")


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("CREATE TABLE t (tenant_id INT, locked INT, transactions INT, preselect INT)", "CreateTable"),
        ("ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (i) REFERENCES u (i)", "AlterTable"),
        ("DROP TABLE t", "DropTable"),
        ("RENAME TABLE t TO u", "RenameTable"),
        ("TRUNCATE TABLE t", "TruncateTable"),
        ("CREATE INDEX k ON t (i)", "CreateIndex"),
        ("DROP INDEX k ON t", "DropIndex"),
    ],
)
def test_one_on_tables_leaves_nothing(text: str, action: str) -> None:
    assert leaves_nothing(record(text, action))
    assert not leaves_nothing(record(text, action, "DropDatabase"))
    assert not leaves_nothing(record(text))


@pytest.mark.parametrize(
    "text",
    [
        "TABLE t (i INT DEFAULT (@v := 1))", "TABLE t (i INT) START TRANSACTION", "TABLE t AS SELECT 1",
        "TABLE t (i INT DEFAULT (last_insert_id()))", "TABLE t (i INT DEFAULT (GET_LOCK('a', 1)))",
        "TABLE t (i INT DEFAULT (FOUND_ROWS()))", "TABLE t (i INT DEFAULT (ROW_COUNT()))",
        "TABLE t (i INT DEFAULT (@@timestamp))", "TEMPORARY TABLE t (i INT)",
    ],
)  # fmt: skip
def test_one_that_asks_the_session_may_not(text: str) -> None:
    assert not leaves_nothing(record(f"CREATE {text}", "CreateTable"))


@pytest.mark.parametrize("action", ["CreateDatabase", "CreateView", "CreateProcedure", "AlterEvent"])
def test_one_on_anything_else_may_not(action: str) -> None:
    assert not leaves_nothing(record("…", action))
