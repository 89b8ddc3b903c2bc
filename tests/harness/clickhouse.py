"""ClickHouse's SQL on Kafka, in a process of its own: the server's code as a Python package."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cdc.sandbox.fetch.cache import cached, run_fetch
from tests.harness.wait import LIMIT_SECONDS

__all__ = ["clickhouse_rows"]

_PACKAGE = "chdb-core==26.9.0"
# The package has no background threads: creating a table of Kafka ends with an error, though the table is there, and no
# materialized view is executed. So the program inserts what the view selects, again and again.
_PROGRAM = """
import json, sys, time
from chdb.session import Session

folder, wanted, view, query, *tables = json.loads(sys.argv[1])
session = Session(folder)
for statement in ("SET stream_like_engine_allow_direct_select = 1", "SET output_format_decimal_trailing_zeros = 1"):
    session.query(statement)
for statement in tables:
    try:
        session.query(statement)
    except RuntimeError as error:
        if "Shutdown was called" not in str(error):
            raise
give_up = time.monotonic() + float(sys.argv[2])
rows = None
while rows != wanted and time.monotonic() < give_up:
    session.query(view)
    lines = session.query(query, "TSV").data().splitlines()
    rows = sorted(line.split("\\t") for line in lines)
print(json.dumps(rows))
"""


def clickhouse_rows(
    folder: Path, tables: Sequence[str], *, view: str, query: str, until: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """Creates ``tables``, executes ``view`` (an INSERT with the query of a materialized view) until the sorted rows of
    ``query`` are ``until``; returns the last ones."""
    package = cached(_PACKAGE, _fetch)
    arguments = json.dumps([str(folder / "clickhouse"), [*map(list, until)], view, query, *tables])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, arguments, str(LIMIT_SECONDS)],
        env={"PYTHONPATH": str(package)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [tuple(row) for row in json.loads(done.stdout.splitlines()[-1])]


def _fetch(folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, _PACKAGE]
    run_fetch(command, label="ClickHouse", into=folder)
