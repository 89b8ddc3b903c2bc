"""Histories of migrations on a leader, with the pair and a replica of MySQL's own beside it."""

from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.clients.beside import Beside, execute
from tests.clients.migrations import Migrations
from tests.harness.server_fixtures import MySqlFactory

pytestmark = [pytest.mark.integration, pytest.mark.clients]


@pytest.fixture
def leader(mysql_server: MySqlFactory) -> MySql:
    return mysql_server(server_id=1)


@pytest.fixture
def others(mysql_server: MySqlFactory) -> tuple[MySql, MySql]:
    return mysql_server(server_id=2), mysql_server(server_id=3)


def test_flyway_and_liquibase(tmp_path: Path, leader: MySql, others: tuple[MySql, MySql], kafka: Kafka) -> None:
    with Beside.running(tmp_path, leader, others, kafka, name="migrations") as beside:
        execute(leader, "CREATE DATABASE flyway", "CREATE DATABASE liquibase")
        Migrations(leader, "flyway").flyway()
        beside.judge("Flyway: 17 migrations", "flyway")
        assert execute(leader, "SELECT SUM(success), COUNT(*) FROM flyway.flyway_schema_history") == [(17, 17)]
        liquibase = Migrations(leader, "liquibase")
        liquibase.liquibase("update")
        beside.judge("Liquibase: 27 change sets", "liquibase")
        liquibase.liquibase("rollback-count", "--count=1")
        beside.judge("Liquibase: one rolled back", "liquibase")
        liquibase.liquibase("rollback", "--tag=before_the_end")
        liquibase.liquibase("update")
        beside.judge("Liquibase: rolled back to a tag, and again", "liquibase")
        assert execute(leader, "SELECT COUNT(*) FROM liquibase.DATABASECHANGELOG") == [(27,)]
    beside.audit()
