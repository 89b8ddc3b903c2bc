"""How much memory a process takes, as Linux tells it."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.harness.programs import BIN
from tests.harness.wait import until

__all__ = ["peak_of", "peak_of_run", "peak_to_the_end"]


def peak_of(pid: int) -> float:
    """The most memory that a process ever had resident, in MB; 0 when it has ended (proc(5), VmHWM)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def peak_to_the_end(program: str, profile: Path, *, seconds: float) -> float:
    """Run a program to where its source is now; its peak of memory in MB."""
    status, peak = peak_of_run([BIN / program, profile, "--until-current"], seconds=seconds)
    assert status == 0
    return peak


def peak_of_run(command: Sequence[str | Path], *, seconds: float) -> tuple[int, float]:
    """Run a command to its end: its exit status and its peak of memory in MB.

    It is asked while it runs: what getrusage(2) tells of a child counts the memory that its parent had at the fork.
    """
    process = subprocess.Popen(command)
    peaks = [0.0]
    until(lambda: peaks.append(peak_of(process.pid)) or process.poll() is not None, seconds=seconds, what="the end")
    return process.returncode, max(peaks)
