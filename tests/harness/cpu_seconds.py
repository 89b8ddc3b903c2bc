"""CPU seconds, user and system, of tests and of all processes that they start.

``python -m tests.harness.cpu_seconds COMMAND`` runs a command and prints its sum; as a plugin of pytest it lists the
dearest tests. A second of CPU is much the same on a busy machine as on an idle one, so a budget in them can be kept.
The parent that waits for a process counts its time (``getrusage``). The parent of a process that outlives its own
becomes the nearest process that has asked for orphans (``PR_SET_CHILD_SUBREAPER``, Linux): here the one that counts.
"""

import ctypes
import os
import resource
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

_PR_SET_CHILD_SUBREAPER = 36
_PROPERTY = "cpu_seconds"
_DEAREST = 15
_TICKS = os.sysconf("SC_CLK_TCK")


def of_this_tree() -> float:
    """The seconds that this process and its descendants have used so far, ended ones included."""
    if not _has_children():
        return sum(os.times()[:4])  # no reading of all processes after each of thousands of tests
    used: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                # The name of a program, in parentheses, may contain anything.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            # proc(5): 4 is the parent; 14 to 17 are the ticks of its own and of the children that it waited for.
            used[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    return sum(used[process][1] for process in _tree(os.getpid(), used)) / _TICKS


def _has_children() -> bool:
    """Whether this process has started one that it has not waited for yet; True if the kernel does not list them
    (proc(5): ``children`` of each thread).
    """
    try:
        return any((thread / "children").read_text() for thread in Path("/proc/self/task").iterdir())
    except OSError:
        return True


def _tree(root: int, used: dict[int, tuple[int, int]]) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for process, (parent, _) in used.items():
        children.setdefault(parent, []).append(process)
    waiting = [root]
    while waiting:
        process = waiting.pop()
        if process in used:
            yield process
        waiting += children.get(process, [])


class _Meter:
    """Adds to each test's last report the time that it used. The first test that needs a server or a Spark pays its
    start.
    """

    def __init__(self) -> None:
        self._so_far = of_this_tree()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: "pytest.CallInfo[None]"
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            now = of_this_tree()
            report.user_properties.append((_PROPERTY, now - self._so_far))
            self._so_far = now
        return report


class _Dearest:
    """Collects the time that each test used, and lists the dearest tests at the end."""

    def __init__(self) -> None:
        self._tests: list[tuple[float, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        used = [value for name, value in report.user_properties if name == _PROPERTY]
        self._tests += [(value, report.nodeid) for value in used if isinstance(value, float)]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        dearest = sorted(self._tests, reverse=True)[:_DEAREST]
        terminalreporter.section(f"the {len(dearest)} dearest tests, in CPU seconds")
        for seconds, name in dearest:
            terminalreporter.write_line(f"{seconds:7.1f}  {name}")
        file = os.environ.get("CDC_CPU_FILE")
        if file:
            Path(file).write_text(
                "".join(f"{seconds:.2f}\t{name}\n" for seconds, name in sorted(self._tests, reverse=True))
            )


def pytest_configure(config: pytest.Config) -> None:
    """Counts in the processes that run tests; lists in the one that knows all: with several processes (pytest-xdist)
    the first.
    """
    if sys.platform != "linux" or config.getoption("collectonly"):
        return
    worker = hasattr(config, "workerinput")
    if worker or not config.getoption("numprocesses", None):
        config.pluginmanager.register(_Meter(), "cdc-cpu-meter")
    if not worker:
        config.pluginmanager.register(_Dearest(), "cdc-cpu-dearest")


def main() -> int:
    """Runs the command in the arguments, and waits for all processes that outlive it; returns the command's exit
    status.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    command, status = subprocess.Popen(sys.argv[1:]).pid, 0
    while True:
        try:
            process, ended = os.wait()
        except ChildProcessError:
            break
        if process == command:
            status = os.waitstatus_to_exitcode(ended)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} CPU seconds in all", flush=True)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
