"""What holds for every test: the server fixtures, and that a run which must prove something on real servers does."""

import fcntl
import gc
import logging
import os
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cdc.errors import CdcError
from cdc.sandbox.fetch.mysql_programs import mysql_programs
from cdc.sandbox.server.kafka import VERSION
from tests.harness.long_runs import LONG
from tests.harness.server_pool import ON_80

pytest_plugins = ["tests.harness.leaked_secrets", "tests.harness.server_fixtures", "tests.harness.cpu_seconds"]

# How long an example takes is the machine's business, and no test's.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_INTEGRATION = Path(__file__).with_name("integration")
# Wall time, in this order: with several processes these begin first, so that none is left alone with one at the end.
_FIRST = (
    "test_a_cluster", "test_no_drift", "test_each_program_tells_why_the_brokers_do_not_answer",
    "test_the_server_ends_a_connection_that_died_without_a_word", "test_random_kills", "test_a_large_transaction",
)  # fmt: skip


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A program that a test runs in this process sets up the logging, over streams that end with the test."""
    logger = logging.getLogger("cdc")
    handlers, level, propagate, hook = logger.handlers[:], logger.level, logger.propagate, sys.excepthook
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)
    logger.propagate = propagate
    sys.excepthook = hook


@pytest.fixture(autouse=True)
def names_of_folders_stay_taken(request: pytest.FixtureRequest) -> Iterator[None]:
    """The folder of a test that has passed is deleted, and of its name were made those of topics (``own_name``): an
    empty one takes its place, so that no later test gets it."""
    yield
    folder = request.node.funcargs.get("tmp_path")
    if folder is not None:
        folder.mkdir(exist_ok=True)


class _Witness:
    """Fails a run that was to include the integration tests, with CDC_REQUIRE_INTEGRATION=1, when none of them ran."""

    def __init__(self, config: pytest.Config) -> None:
        asked = [(config.invocation_params.dir / argument.partition("::")[0]).resolve() for argument in config.args]
        self.asked = any(_INTEGRATION.is_relative_to(path) or path.is_relative_to(_INTEGRATION) for path in asked)
        self.ran = 0

    def pytest_report_header(self) -> str:
        if not self.asked:
            return "servers: none of the sandbox"
        try:
            version = ".".join(map(str, mysql_programs().version))
        except CdcError as error:
            return f"servers: {error}"
        return f"servers: MySQL {version}, Apache Kafka {VERSION}"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.skipped and Path(report.fspath).is_relative_to("tests/integration"):
            self.ran += 1

    def _broken(self) -> bool:
        return self.asked and not self.ran and os.environ.get("CDC_REQUIRE_INTEGRATION") == "1"

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._broken():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._broken():
            terminalreporter.write_line("CDC_REQUIRE_INTEGRATION=1, but no test ran on real servers", red=True)


def _longest_first(items: list[pytest.Item]) -> None:
    """Put the longest tests before the others. The group of tests with a Spark session, which pytest-xdist begins with
    as the largest one, is not among them."""
    place = {name: number for number, name in enumerate(_FIRST)}
    items.sort(key=lambda item: place.get(getattr(item, "originalname", item.name), len(place)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out long tests except in a long run, and on MySQL 8.0 tests that need newer servers. A worker that does
    not know its groups would start a Spark session of its own, as each of the others.
    """
    _longest_first(items)
    marks = [*([] if LONG else ["long"]), *(["newer"] if ON_80 else [])]
    left_out = [item for item in items if any(map(item.get_closest_marker, marks))]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
    if hasattr(config, "workerinput") and config.getoption("dist") == "loadgroup":
        lost = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        if lost:
            raise pytest.UsageError(f"pytest-xdist ignores the group of {lost[0]} and {len(lost) - 1} others")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Collects tests without collections of garbage, which would look through a million objects again and again.

    Where no test is compiled yet, one process compiles them and the others wait, which would do the same meanwhile.
    """
    gc.disable()
    with ExitStack() as until_compiled:
        if hasattr(session.config, "workerinput") and not _compiled(session.config):
            run = Path(tempfile.gettempdir(), f"cdc-tests-{session.config.workerinput['testrunuid']}")
            lock = until_compiled.enter_context(run.open("a"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                until_compiled.callback(run.unlink, missing_ok=True)
            except BlockingIOError:
                fcntl.flock(lock, fcntl.LOCK_SH)
        return (yield)


def _compiled(config: pytest.Config) -> bool:
    return any(any(config.invocation_params.dir.joinpath(each).glob("**/__pycache__")) for each in config.args)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """What is there by now stays to the end: no later collection of garbage looks through a million objects of it."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    # With several processes (pytest-xdist) the first one hears of all tests, and the others only of their own.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Witness(config), "cdc-witness")
