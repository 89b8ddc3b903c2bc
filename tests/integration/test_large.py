"""A leader transaction much larger than Kafka's, with kills in its midst: all of it, once, in little memory.

``CDC_LARGE_ROWS=10000000`` makes it one of 1 GB; compressed by the leader, it is one event of more than half of that.
"""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.record import Record
from cdc.sandbox.kafka import Kafka
from tests.fix_sandbox import MySqlFactory
from tests.programs import BIN, end_offset, run_well, running, write_profile
from tests.wait import until

pytestmark = [pytest.mark.integration, pytest.mark.crash]

ROWS = int(os.environ.get("CDC_LARGE_ROWS", "400000"))
KILLS = 4 if ROWS > 1_000_000 else 2  # a small one is through before there could be more
ROWS_IN_EVENT = 75  # about: events have 8 KB, rows 105 bytes
MEMORY_MB = 300
LIMIT_SECONDS = 60 + ROWS // 5000


@pytest.mark.parametrize("compression", ["OFF", "ON"])
def test_a_large_transaction(
    compression: str, tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"huge_{compression}"
    leader = mysql_server("--innodb-redo-log-capacity=1G")
    # Many small Kafka transactions: a fast machine must not be through before it is killed.
    limits = {"commit_bytes": max(100_000, ROWS // 10)}
    path = write_profile(tmp_path, leader, kafka, name=name, producer=limits)
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE huge")
        cursor.execute("CREATE TABLE huge.a (i INT PRIMARY KEY, t CHAR(96) CHARACTER SET ascii)")
        run_well("cdc-producer", path, "--until-current")
        cursor.execute("SET cte_max_recursion_depth = 4294967295")
        cursor.execute(f"SET binlog_transaction_compression = {compression}")
        # Text that does not compress away.
        cursor.execute(
            "INSERT INTO huge.a WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i + 1 < %s) "
            "SELECT i, CONCAT(SHA2(i, 256), LEFT(SHA2(-i, 256), 32)) FROM n",
            (ROWS,),
        )
        cursor.execute("INSERT INTO huge.a VALUES (-1, 'the next transaction')")
    peaks = [killed_later(path, kafka, name, records=ROWS // ROWS_IN_EVENT // (KILLS + 4)) for _ in range(KILLS)]
    before = end_offset(kafka, name)
    peaks.append(to_the_end(path))
    assert end_offset(kafka, name) > before + 100, "killed too late: the transaction was already through"
    found = summed_up(path)
    with capsys.disabled():
        shown = ", ".join(f"{peak:.0f}" for peak in peaks)
        print(f"\n{ROWS} rows, compression {compression}, {found}, peaks of memory in MB: {shown}")
    assert found == {"rows": ROWS + 1, "ends": 4, "broken": 0}
    assert max(peaks) < MEMORY_MB


def killed_later(path: Path, kafka: Kafka, name: str, *, records: int) -> float:
    """Run the producer until so many more records can be read, then kill it; its peak of memory in MB."""
    before = end_offset(kafka, name)
    with running("cdc-producer", path) as process:
        until(lambda: end_offset(kafka, name) > before + records, seconds=LIMIT_SECONDS, what="more records")
        peak = memory(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
    return peak


def to_the_end(path: Path) -> float:
    """Run the producer to where the leader is; its peak of memory in MB."""
    process = subprocess.Popen([BIN / "cdc-producer", path, "--until-current"])
    peaks = [0.0]
    until(
        lambda: peaks.append(memory(process.pid)) or process.poll() is not None, seconds=LIMIT_SECONDS, what="the end"
    )
    assert process.returncode == 0
    return max(peaks)


def memory(pid: int) -> float:
    """The most memory that a process ever had resident, in MB; 0 when it has ended (proc(5), VmHWM)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def summed_up(path: Path) -> dict[str, int]:
    """The topic read record by record: all its rows, the ends of transactions, and what is not as it must be."""
    summary = {"rows": 0, "ends": 0, "broken": 0}
    sequence = index = 0
    for record in streamed(path):
        summary["broken"] += record.sequence != sequence or record.index != index
        sequence, index = record.sequence + 1, 0 if record.last else record.index + 1
        summary["ends"] += record.last
        for row in record.rows:
            assert row.after is not None
            key = row.after[0]["SignedInteger"]
            summary["broken"] += key != (summary["rows"] if summary["rows"] < ROWS else -1)
            summary["rows"] += 1
    return summary


def streamed(path: Path) -> Iterator[Record]:
    """The records of the profile's topic, one at a time."""
    tail = subprocess.Popen([BIN / "cdc-tail", path, "-B", "--json"], stdout=subprocess.PIPE)
    assert tail.stdout is not None
    with tail.stdout as lines:
        yield from (Record.parse(line, where="cdc-tail") for line in lines)
    assert tail.wait() == 0
