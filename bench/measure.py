"""Shared by the benchmarks: writes profiles, runs cdc's programs and a plain binlog reader, measures their time."""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql

__all__ = [
    "BIN", "Used", "cpu_seconds", "plain_reader", "process_cpu_seconds", "profile", "run_program",
    "running", "server_cpu_seconds", "server_process", "timed", "used",
]  # fmt: skip

BIN = Path(sys.executable).parent


def profile(path: Path, server: MySql, kafka: Kafka, *, topic: str = "bench", transactions: bool = True) -> Path:
    path.write_text(
        f'[database]\nport = {server.port}\nuser = "{USER}"\npassword = "{PASSWORD}"\n'
        f'[kafka]\nbootstrap_servers = "{kafka.bootstrap_servers}"\ntopic = "{topic}"\n'
        f'transactions = {str(transactions).lower()}\n[log]\nlevel = "warning"\n'
    )
    return path


def run_program(program: str, path: Path) -> None:
    subprocess.run([BIN / program, path, "--until-current"], check=True)


@contextmanager
def running(program: str, path: Path) -> Iterator[int]:
    """Runs one of cdc's programs in the background; yields its process id."""
    process = subprocess.Popen([BIN / program, path])
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def plain_reader(leader: MySql, count: int) -> None:
    """Reads with mysql-replication's own reader, which decodes the rows and does nothing with them."""
    settings = {"host": "127.0.0.1", "port": leader.port, "user": USER, "passwd": PASSWORD}
    reader = BinLogStreamReader(settings, server_id=99, only_events=[WriteRowsEvent], resume_stream=True,
                                log_file="binlog.000001", log_pos=4)  # fmt: skip
    seen = 0
    for event in reader:
        seen += len(event.rows)
    reader.close()
    assert seen == count


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """Wall seconds of ``work``, and CPU seconds of this process and its children."""
    before, start = cpu_seconds(), time.monotonic()
    work()
    return time.monotonic() - start, cpu_seconds() - before


def cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@dataclass(frozen=True)
class Used:
    """Wall and CPU seconds of a program, and its largest resident size."""

    wall: float
    cpu: float
    megabytes: float


def used(program: str, path: Path) -> Used:
    """Runs one of cdc's programs up to the current end."""
    begun = time.monotonic()
    process = subprocess.Popen([BIN / program, path, "--until-current"])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{program} ended with {process.returncode}"
    return Used(time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def server_cpu_seconds(server: MySql) -> float:
    """The CPU seconds of a server since its start."""
    return process_cpu_seconds(server_process(server))


def server_process(server: MySql) -> int:
    """The process id of a server."""
    return int((server.data / "mysqld.pid").read_text())


def process_cpu_seconds(pid: int) -> float:
    """The CPU seconds of all threads of a process since its start (proc(5), utime and stime)."""
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
