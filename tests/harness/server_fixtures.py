"""Fixtures of real servers: a leader, a follower and Kafka that tests share, and factories for a test's own."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.fetch.mysql_programs import mariadb_programs, mariadb_programs_118, mysql_programs_80
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql, maria_db
from tests.harness.keeper import FEW_THREADS, SharedKafka, jvm, kept, shared_broker
from tests.harness.long_runs import in_long_runs
from tests.harness.remote_kafka import RemoteKafka
from tests.harness.server_pool import KILLED_AT_MOST, ServerPool, programs_of
from tests.harness.topic import Stage

MARIADB_PROGRAMS = {"10.11": mariadb_programs, "11.8": mariadb_programs_118}
_LARGE_BINLOG = 4_000_000  # bytes
_SHARED = ("leader", "follower", "leader_80", "follower_80")
_KEEPER = pytest.StashKey[int]()
MySqlFactory = Callable[..., MySql]
KafkaFactory = Callable[..., Kafka]


def pytest_configure(config: pytest.Config) -> None:
    """Starts the keeper in the process that starts the workers, or that runs all tests itself.

    Mutants are run against unit tests, which need no broker; a keeper for each of them would cost more than its tests.
    """
    if not hasattr(config, "workerinput") and "MUTANT_UNDER_TEST" not in os.environ:
        keeper = kept()
        config.stash[_KEEPER] = keeper.__enter__()
        config.add_cleanup(lambda: keeper.__exit__(None, None, None))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Passes the keeper's port to a worker (pytest-xdist)."""
    node.workerinput["keeper"] = node.config.stash[_KEEPER]


class _Shared(MySql):
    """A server that writes no redo log, so that a start after a stop loses counters of its dictionary."""

    def stop(self) -> None:
        raise AssertionError("a test that restarts a server needs one of its own: mysql_server")


@contextmanager
def started(folder: Path, **options: Any) -> Iterator[MySql]:
    """A server on fresh data in ``folder``, for several tests, of which none kills it: it writes no redo log."""
    server = _Shared(folder, extra_args=KILLED_AT_MOST, **options)
    try:
        with server.start().root() as connection, connection.cursor() as cursor:
            cursor.execute("ALTER INSTANCE DISABLE INNODB REDO_LOG")
        yield server
    finally:
        # No test needs the data any more, so none waits for an orderly end.
        server.kill()


@pytest.fixture(scope="session")
def leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """A leader that all tests of a worker share; the databases that a test creates are dropped after it."""
    with started(tmp_path_factory.mktemp("leader"), server_id=1, find=programs_of("leader")) as server:
        yield server


@pytest.fixture(scope="session")
def follower(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """A follower that all tests of a worker share; the databases that a test creates are dropped after it,
    ``cdc`` too.
    """
    with started(tmp_path_factory.mktemp("follower"), server_id=2, find=programs_of("follower")) as server:
        yield server


@pytest.fixture(scope="module")
def leader_80(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """A leader of MySQL 8.0, shared like ``leader`` by the tests of a module: few have one, and a server that nobody
    uses uses CPU time nevertheless."""
    with started(tmp_path_factory.mktemp("leader"), server_id=3, find=mysql_programs_80) as server:
        yield server


@pytest.fixture(scope="module")
def follower_80(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """A follower of MySQL 8.0, shared like ``follower``. Tests that use it are in the xdist_group "8.0"."""
    with started(tmp_path_factory.mktemp("follower"), server_id=4, find=mysql_programs_80) as server:
        yield server


@pytest.fixture(scope="session", params=["10.11", in_long_runs("11.8")])
def mariadb(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """A MariaDB leader that all tests of a worker share; each begins a new binlog."""
    server = maria_db(tmp_path_factory.mktemp("mariadb"), server_id=7, find=MARIADB_PROGRAMS[request.param])
    try:
        yield server.start()
    finally:
        server.kill()


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> SharedKafka:
    """A broker that all tests of all workers share: each test uses topics of its own name."""
    worker = getattr(pytestconfig, "workerinput", None)
    port = worker["keeper"] if worker else pytestconfig.stash[_KEEPER]
    return shared_broker(port, tmp_path_factory.mktemp("kafka"))


@pytest.fixture(autouse=True)
def databases_as_they_were(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drops from the shared servers the databases that the test created, so that tests do not depend on
    earlier ones.
    """
    shared = {name: request.getfixturevalue(name) for name in _SHARED if name in request.fixturenames}
    servers = [server for server in shared.values() if isinstance(server, MySql)]
    with new_databases_dropped(*servers):
        yield
    for name, server in shared.items():
        if name.startswith("leader") and server in servers:
            _begin_binlog(server)


def _begin_binlog(server: MySql) -> None:
    """Begins a new binlog where the newest one has become large: the server would read through it for each program that
    starts."""
    newest = max(server.data.glob("binlog.0*"), key=lambda file: file.name)
    if newest.stat().st_size > _LARGE_BINLOG:
        with server.root() as connection, connection.cursor() as cursor:
            cursor.execute("FLUSH BINARY LOGS")


@contextmanager
def new_databases_dropped(*servers: MySql) -> Iterator[None]:
    """Drops at the end of the block the databases that the servers did not have at its beginning."""
    before = [_databases(server) for server in servers]
    try:
        yield
    finally:  # databases left by a failed test made others fail
        for server, earlier in zip(servers, before, strict=True):
            for database in _databases(server) - earlier:
                _drop(server, database)


def _drop(server: MySql, database: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        # A session that a test left open fails that test, and does not delay the others. Tables of one database may
        # refer to those of another.
        cursor.execute("SET lock_wait_timeout = 30, foreign_key_checks = 0")
        cursor.execute("DROP DATABASE `{}`".format(database.replace("`", "``")))


def _databases(server: MySql) -> set[str]:
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        return {name for (name,) in cursor.fetchall()}


@pytest.fixture(scope="session")
def servers_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerPool]:
    """The servers that one test after the other has for itself."""
    pool = ServerPool(tmp_path_factory.mktemp("servers"))
    try:
        yield pool
    finally:
        pool.close()


@pytest.fixture
def mysql_server(servers_of_tests: ServerPool) -> Iterator[MySqlFactory]:
    """``mysql_server(*extra_args, server_id=…)`` gives a server of the test's own, without data, that it may kill."""
    given = []

    def start(*extra_args: str, **options: Any) -> MySql:
        given.append(servers_of_tests.mysql(*extra_args, **options))
        return given[-1].server

    yield start
    for pooled in given:
        servers_of_tests.give_back(pooled)


@pytest.fixture
def kafka_broker(tmp_path: Path) -> Iterator[KafkaFactory]:
    """``kafka_broker(settings={…})`` gives a broker of the test's own, without topics, that it may kill."""
    brokers = list[Kafka]()

    def start(**options: Any) -> Kafka:
        options["settings"] = FEW_THREADS | options.get("settings", {})
        broker = Kafka(tmp_path / f"kafka{len(brokers)}", jvm=jvm(), **options)
        brokers.append(broker)
        return broker.start()

    yield start
    for broker in brokers:
        broker.kill()


@pytest.fixture
def kafka_at_a_distance(kafka: Kafka) -> Iterator[RemoteKafka]:
    """Gives the shared broker behind a proxy of the test's own: ``kill`` refuses connections, ``start`` accepts them.

    For tests of programs that find no broker. Tests of what a broker does after a kill need ``kafka_broker``, which
    costs as much CPU time as a hundred runs of a program.
    """
    remote = RemoteKafka(kafka)
    yield remote.start()
    remote.kill()


@pytest.fixture
def stage(tmp_path: Path, follower: MySql, kafka: Kafka, request: pytest.FixtureRequest) -> Stage:
    """A topic made by hand, and a database on the shared follower, both named after the test."""
    return Stage.make(tmp_path, follower, kafka, name=request.node.originalname[5:55])
