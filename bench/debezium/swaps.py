"""Unique keys that move between rows within a transaction: which tables are equal in the end."""

from collections.abc import Iterator, Sequence

from bench.debezium.pipelines import Pipeline
from bench.debezium.stage import Stage, execute
from bench.debezium.table import Row

__all__ = ["BUFFERED", "DATABASE", "rows"]

# The sink of the second database merges the changes of a row within a batch.
DATABASE, BUFFERED = "swaps", "swaps_buffered"
_TABLE = "(id INT PRIMARY KEY, k INT NOT NULL, v VARCHAR(20), UNIQUE KEY (k))"
_ROWS = "(1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four'), (5, 5, 'five')"
_REPEATED = 5
# Each transaction, on the table {0}; what it does may be done again.
TRANSACTIONS = {
    "swapped": ("UPDATE {0} SET k = -3 + k WHERE id IN (1, 2)", "UPDATE {0} SET k = -k WHERE id IN (1, 2)"),
    "rotated": ("UPDATE {0} SET k = -k", "UPDATE {0} SET k = IF(k = -5, 1, 1 - k) ORDER BY k DESC"),
    "shifted": ("UPDATE {0} SET k = k + 1 ORDER BY k DESC", "UPDATE {0} SET k = k - 1 ORDER BY k"),
    "shifted_on": ("UPDATE {0} SET k = k + 1 ORDER BY k DESC",),
    "deleted_and_inserted": ("DELETE FROM {0} WHERE id IN (1, 2)", "INSERT INTO {0} VALUES (1, 2, 'one')",
                  "INSERT INTO {0} VALUES (2, 1, 'two')"),
    "replaced": ("REPLACE INTO {0} VALUES (6, 1, 'six')", "REPLACE INTO {0} VALUES (1, 1, 'one')"),
    "taken_over": ("DELETE FROM {0} WHERE k = 1", "INSERT INTO {0} SELECT MAX(id) + 1, 1, 'new' FROM {0}"),
    "primary_keys": ("UPDATE {0} SET id = -1 WHERE id = 1", "UPDATE {0} SET id = 1 WHERE id = 2",
                     "UPDATE {0} SET id = 2 WHERE id = -1"),
}  # fmt: skip


def rows(stage: Stage, pipelines: Sequence[Pipeline]) -> Iterator[Row]:
    for each in pipelines:
        each.end()  # so that all of it comes in one batch
    for database in (DATABASE, BUFFERED):
        stage.prepare(*(f"CREATE TABLE {database}.{name} {_TABLE}" for name in TRANSACTIONS))
        for name, statements in TRANSACTIONS.items():
            table = f"{database}.{name}"
            execute(stage.leader, f"INSERT INTO {table} VALUES {_ROWS}")
            for _ in range(_REPEATED):
                execute(stage.leader, "BEGIN", *(each.format(table) for each in statements), "COMMIT")
    for each in pipelines:
        each.start()
        each.settle()
    for database, more in ((DATABASE, ""), (BUFFERED, ", `use.reduction.buffer = true`")):
        answers = {}
        for each in pipelines:
            same = [name for name in TRANSACTIONS if equal(stage, each.name, f"{database}.{name}")]
            other = ", ".join(name for name in TRANSACTIONS if name not in same)
            why = each.stopped(database)
            answers[each.name] = f"{len(same)}" + f"; not {other}" * bool(other) + f"; stopped: {why}" * bool(why)
        yield Row(
            f"unique keys moved between rows in a transaction{more}: equal tables of {len(TRANSACTIONS)}", answers
        )


def equal(stage: Stage, pipeline: str, table: str) -> bool:
    """Whether the follower's table has the leader's rows."""
    asked = f"SELECT * FROM {table} ORDER BY id"
    return execute(stage.leader, asked) == execute(stage.followers[pipeline], asked)
