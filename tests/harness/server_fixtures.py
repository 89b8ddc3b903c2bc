"""Fixtures of real servers: a leader, a follower and Kafka that tests share, and factories for a test's own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.fetch.mysql_programs import mysql_programs_80
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.keeper import FEW_THREADS, jvm, kept, shared_broker
from tests.harness.topic import Stage

_SHARED = ("leader", "follower", "leader_80", "follower_80")
_KEEPER = pytest.StashKey[int]()
MySqlFactory = Callable[..., MySql]
KafkaFactory = Callable[..., Kafka]


def pytest_configure(config: pytest.Config) -> None:
    """The process that starts the workers, or that runs all tests itself, has the keeper."""
    if not hasattr(config, "workerinput"):
        keeper = kept()
        config.stash[_KEEPER] = keeper.__enter__()
        config.add_cleanup(lambda: keeper.__exit__(None, None, None))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker (pytest-xdist) where the keeper is."""
    node.workerinput["keeper"] = node.config.stash[_KEEPER]


@contextmanager
def started(folder: Path, **options: Any) -> Iterator[MySql]:
    """A server on fresh data in ``folder``, for several tests."""
    server = MySql(folder, **options)
    try:
        yield server.start()
    finally:
        # No test needs the data any more, so none waits for an orderly end.
        server.kill()


@pytest.fixture(scope="session")
def leader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """A leader that all tests of a worker share; the databases that a test makes end with it."""
    with started(tmp_path_factory.mktemp("leader"), server_id=1) as server:
        yield server


@pytest.fixture(scope="session")
def follower(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """A follower that all tests of a worker share; the databases that a test makes end with it, ``cdc`` too."""
    with started(tmp_path_factory.mktemp("follower"), server_id=2) as server:
        yield server


@pytest.fixture(scope="session")
def leader_80(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """As ``leader``, of MySQL 8.0."""
    with started(tmp_path_factory.mktemp("leader"), server_id=3, find=mysql_programs_80) as server:
        yield server


@pytest.fixture(scope="session")
def follower_80(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySql]:
    """As ``follower``, of MySQL 8.0. Tests that use it are of the xdist_group "8.0"."""
    with started(tmp_path_factory.mktemp("follower"), server_id=4, find=mysql_programs_80) as server:
        yield server


@pytest.fixture(scope="session")
def kafka(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    """A broker that all tests of all workers share: each uses topics of its own name."""
    worker = getattr(pytestconfig, "workerinput", None)
    port = worker["keeper"] if worker else pytestconfig.stash[_KEEPER]
    return shared_broker(port, tmp_path_factory.mktemp("kafka"))


@pytest.fixture(autouse=True)
def databases_as_they_were(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drops from the shared servers what the test made: which tests ran there before is nothing to the next one."""
    shared = [request.getfixturevalue(name) for name in _SHARED if name in request.fixturenames]
    with new_databases_dropped(*(server for server in shared if isinstance(server, MySql))):
        yield


@contextmanager
def new_databases_dropped(*servers: MySql) -> Iterator[None]:
    """Drops at the end of the block the databases that the servers did not have at its beginning."""
    before = [_databases(server) for server in servers]
    try:
        yield
    finally:  # what one that failed left there made others fail
        for server, earlier in zip(servers, before, strict=True):
            for database in _databases(server) - earlier:
                _drop(server, database)


def _drop(server: MySql, database: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        # A session that a test left open fails it here, and does not hold the others up.
        # Tables of one database may refer to those of another.
        cursor.execute("SET lock_wait_timeout = 30, foreign_key_checks = 0")
        cursor.execute("DROP DATABASE `{}`".format(database.replace("`", "``")))


def _databases(server: MySql) -> set[str]:
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW DATABASES")
        return {name for (name,) in cursor.fetchall()}


@pytest.fixture
def mysql_server(tmp_path: Path) -> Iterator[MySqlFactory]:
    """``mysql_server(*extra_args, server_id=…)`` starts a server of the test's own on fresh data."""
    servers: list[MySql] = []

    def start(*extra_args: str, **options: Any) -> MySql:
        server = MySql(tmp_path / f"mysql{len(servers)}", extra_args=extra_args, **options)
        servers.append(server)
        return server.start()

    yield start
    for server in servers:
        server.kill()


@pytest.fixture
def kafka_broker(tmp_path: Path) -> Iterator[KafkaFactory]:
    """``kafka_broker(settings={…})`` starts a broker of the test's own on fresh data."""
    brokers: list[Kafka] = []

    def start(**options: Any) -> Kafka:
        options["settings"] = FEW_THREADS | options.get("settings", {})
        broker = Kafka(tmp_path / f"kafka{len(brokers)}", jvm=jvm(), **options)
        brokers.append(broker)
        return broker.start()

    yield start
    for broker in brokers:
        broker.kill()


@pytest.fixture
def stage(tmp_path: Path, follower: MySql, kafka: Kafka, request: pytest.FixtureRequest) -> Stage:
    """A topic made by hand, and a database on the shared follower, both called as the test is."""
    return Stage.make(tmp_path, follower, kafka, name=request.node.originalname[5:55])
