"""Django's and SQLAlchemy's own tests on a leader, with the pair and a replica of MySQL's own beside it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from tests.checks.compare import databases
from tests.clients.beside import Beside, execute, tell
from tests.clients.suites import run_django, run_sqlalchemy
from tests.harness.server_fixtures import MySqlFactory

pytestmark = [pytest.mark.integration, pytest.mark.clients]

WHOLE = os.environ.get("CDC_WHOLE_SUITES") == "1"
# Parts of them, unless CDC_WHOLE_SUITES=1: what changes tables, and what writes in the most ways.
APPS = [
    "backends", "bulk_create", "datatypes", "db_functions", "delete", "fixtures", "from_db_value", "get_or_create",
    "indexes", "inspectdb", "introspection", "invalid_models_tests", "m2m_through", "many_to_many",
    "migrate_signals", "migration_test_data_persistence", "migrations", "migrations2", "model_fields",
    "multiple_database", "schema", "select_for_update", "sites_tests", "timezones", "transactions", "update",
]  # fmt: skip
TESTS = [
    "test/dialect/mysql", "test/dialect/test_suite.py", "test/engine/test_reflection.py",
    "test/engine/test_transaction.py", "test/engine/test_ddlevents.py", "test/sql/test_constraints.py",
    "test/sql/test_defaults.py", "test/sql/test_computed.py", "test/sql/test_insert_exec.py", "test/sql/test_types.py",
    "test/orm/test_unitofwork.py", "test/orm/test_cycles.py",
]  # fmt: skip
SCHEMAS = ("test", "test_schema", "test_schema_2")


@pytest.fixture
def beside(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, request: pytest.FixtureRequest) -> Any:
    leader, follower, native = (mysql_server(server_id=number) for number in (1, 2, 3))
    name, tables = request.param
    with Beside.running(tmp_path, leader, (follower, native), kafka, name=name, **tables) as made:
        yield made


def chosen(name: str, usual: Sequence[str], whole: Sequence[str]) -> Sequence[str]:
    """What ``name`` in the environment says, else all or the usual ones."""
    return os.environ[name].split() if name in os.environ else whole if WHOLE else usual


def judge(beside: Beside, suite: str, ended: str) -> None:
    """Fails where a program has stopped, the copies differ, or the follower is behind."""
    tell(f"{suite}'s own tests", ended)
    found = databases(beside.leader)
    beside.judge(suite, *found)
    assert databases(beside.follower) == databases(beside.replica.server) == found
    beside.audit()


@pytest.mark.parametrize("beside", [("django", {})], indirect=True)
def test_django(beside: Beside, tmp_path: Path) -> None:
    ended = run_django(beside.leader, tmp_path, chosen("CDC_DJANGO_APPS", APPS, []))
    judge(beside, "Django", ended)


@pytest.mark.parametrize("beside", [("sqlalchemy", {"consumer": {"engine": "InnoDB"}})], indirect=True)
def test_sqlalchemy(beside: Beside, tmp_path: Path) -> None:
    """Some of its tables are MyISAM's."""
    execute(beside.leader, *(f"CREATE DATABASE {name} CHARACTER SET utf8mb4" for name in SCHEMAS))
    ended = run_sqlalchemy(beside.leader, tmp_path, chosen("CDC_SQLALCHEMY_TESTS", TESTS, ["test"]))
    judge(beside, "SQLAlchemy", ended)
