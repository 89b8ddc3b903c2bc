"""MySQL's own regression tests on a leader with the pair and a replica of MySQL's own beside it."""

import contextlib
import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql
import pytest
from pymysql.constants import ER

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content, databases
from tests.clients.beside import Beside, execute, tell
from tests.clients.mysql_suite import DATABASES, Suite
from tests.harness.server_fixtures import MySqlFactory

pytestmark = [pytest.mark.integration, pytest.mark.clients]

SEED = int(os.environ.get("CDC_SEED", "1"))
TESTS = int(os.environ.get("CDC_SUITE_TESTS", "100"))  # 0: all
# What stops the pair by docs/limitations.md.
LIMITS = re.compile(
    "rows of a discarded or imported tablespace|may number the rows differently|has bytes that are no letters|"
    "as a definer .* does not exist"  # accounts are not replicated
)
SUPPRESSIONS = "mtr"  # where the tests say which errors they expect in the server's log
TABLESPACE = re.compile(r"/\*!50100 TABLESPACE `\w+` \*/ ")
# What no test changes, and what only says how far the server is.
NO_SETTINGS = {"gtid_executed", "gtid_purged", "timestamp"}


@dataclass(frozen=True)
class Outcome:
    """What came of a test: why a program stopped, why the follower differs, why the native replica does not count."""

    test: Path
    stop: str = ""
    difference: str = ""
    native: str = ""

    def __str__(self) -> str:
        said = self.native and f"the native replica: {self.native}"
        return f"| {self.test} | {said or self.difference or self.stop or 'the same'} |".replace("\n", " ")


def test_mysqls_own_tests(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    """Of what the native replica passes nothing differs, and nothing stops that is not in the limitations."""
    suite, leader = Suite.fetched(), mysql_server("--secure-file-priv=")
    others = mysql_server(server_id=2), mysql_server(server_id=3)
    left = chosen(suite.tests())
    outcomes: list[Outcome] = []
    while left:
        name = f"own{len(left)}"
        with Beside.running(
            tmp_path, leader, others, kafka, name=name, filters={"exclude_dbs": [SUPPRESSIONS]}
        ) as beside:
            found = list(until_a_stop(beside, suite, left, tmp_path))
        outcomes += found
        left = left[len(found) :]
        empty(leader, *others)
    counted = [each for each in outcomes if not each.native]
    stopped = [each for each in counted if each.stop]
    same = len([each for each in counted if each == Outcome(each.test)])
    share = f"{same} of {len(counted)} that count are the same ({same / len(counted):.1%}), {len(stopped)} stop"
    tell(f"MySQL's own tests, CDC_SEED={SEED}", share)
    assert len(counted) > len(outcomes) // 2
    assert not [each.test for each in counted if each.difference]
    assert not [each for each in stopped if not LIMITS.search(each.stop)]


def chosen(tests: list[Path]) -> list[Path]:
    return random.Random(SEED).sample(tests, len(tests))[: TESTS or None]


def until_a_stop(beside: Beside, suite: Suite, tests: list[Path], folder: Path) -> Iterator[Outcome]:
    """What came of each test, up to the first after which the servers must begin anew."""
    leader = beside.leader
    settings = dict(execute(leader, "SHOW GLOBAL VARIABLES"))
    execute(leader, *(f"CREATE DATABASE {name}" for name in (*DATABASES, SUPPRESSIONS)))
    execute(leader, f"CREATE PROCEDURE {SUPPRESSIONS}.add_suppression(pattern TEXT) DO 1")
    for test in tests:
        suite.run(test, leader, folder)
        as_it_was(leader, settings)
        outcome = judged(beside, test)
        print(outcome)
        yield outcome
        if outcome != Outcome(test):
            return
        drop(leader, *users(leader))
        execute(leader, *(f"CREATE DATABASE {name}" for name in DATABASES))


def judged(beside: Beside, test: Path) -> Outcome:
    """Compare the three servers."""
    try:
        _, error = beside.catch_up()
    except AssertionError:
        error = beside.replica.catch_up()
        return Outcome(test, stop="; ".join(beside.stops()) or "the follower hangs", native=error)
    if error:
        return Outcome(test, native=error)
    servers = beside.leader, beside.follower, beside.replica.server
    leader, follower, native = ({name: contents(server, name) for name in users(server)} for server in servers)
    if leader == follower:
        return Outcome(test)
    return Outcome(test, difference=different(leader, follower), native=different(leader, native))


def contents(server: MySql, database: str) -> dict[str, Any]:
    found = content(server, database)
    for each in found.values():
        # The follower has no tablespaces of the leader's: cdc-consumer leaves that clause out, and logs it.
        if isinstance(each, dict) and "definition" in each:
            each["definition"] = TABLESPACE.sub("", each["definition"])
    return found


def users(server: MySql) -> list[str]:
    return [name for name in databases(server) if name != SUPPRESSIONS]


def different(one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> str:
    """The first object that differs, and how; empty where none does."""
    for name in sorted(one.keys() | other.keys()):
        first, second = one.get(name, {}), other.get(name, {})
        for each in sorted(first.keys() | second.keys()):
            if first.get(each) != second.get(each):
                return f"{name}.{each}: {str(first.get(each))[:500]} is {str(second.get(each))[:500]}"
    return ""


def as_it_was(server: MySql, settings: dict[str, str]) -> None:
    """End what a test that failed has left: sessions, prepared transactions, settings."""
    for number, user, _, _, command, *_ in execute(server, "SHOW PROCESSLIST"):
        if user == "root" and command == "Sleep":
            with contextlib.suppress(pymysql.err.Error):
                execute(server, f"KILL {number}")
    for *_, name in execute(server, "XA RECOVER"):
        execute(server, f"XA ROLLBACK '{name}'")
    for name, value in execute(server, "SHOW GLOBAL VARIABLES"):
        if name not in NO_SETTINGS and settings.get(name, value) != value:
            literal = settings[name] if re.fullmatch(r"\d+(\.\d+)?", settings[name]) else f"'{settings[name]}'"
            with contextlib.suppress(pymysql.err.Error):
                execute(server, f"SET GLOBAL {name} = {literal}")


def drop(server: MySql, *names: str) -> None:
    """Drop databases, with the files of SELECT … INTO OUTFILE there, which would keep the server from it."""
    for name in names:
        try:
            execute(server, "SET foreign_key_checks = 0", f"DROP DATABASE `{name}`")
        except pymysql.err.OperationalError as error:
            if error.args[0] != ER.DB_DROP_RMDIR:
                raise
            for file in (server.data / name).iterdir():
                file.unlink()
            execute(server, f"DROP DATABASE `{name}`")


def empty(*servers: MySql) -> None:
    """Drop all databases of users, unlogged. The last server is the native replica."""
    execute(servers[-1], "STOP REPLICA")
    for server in servers:
        drops = (f"DROP DATABASE `{name}`" for name in databases(server))
        execute(server, "SET sql_log_bin = 0, foreign_key_checks = 0", *drops)
