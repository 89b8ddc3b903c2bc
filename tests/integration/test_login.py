"""How the programs log in to MySQL: under TLS or not at all, and with passwords of any characters."""

from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.kafka import Kafka
from cdc.sandbox.mysql import MySql
from tests.fix_sandbox import MySqlFactory
from tests.programs import refused, write_profile
from tests.relay import Relay

pytestmark = pytest.mark.integration


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def test_a_server_without_tls_is_refused_where_tls_is_asked_for(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    server = mysql_server("--tls-version=")
    for verify in ("full", "none"):
        tls = {"tls": {"verify": verify}}
        path = write_profile(tmp_path, server, kafka, name=f"no-tls-{verify}", database=tls)
        assert "TLS" in refused("cdc-producer", path)
        for arguments in ([path], [path, "--status"]):
            assert "the server doesn't support it" in refused("cdc-consumer", *arguments)
    assert execute(server, "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'fluvio'") == [(0,)]


def test_one_between_us_and_the_server_that_says_it_has_no_tls(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    """On any connection: the first one, which asks, and the second one, over which the binlog comes."""
    with Relay(leader.port) as relay:
        keys = {"port": relay.port, "tls": {"verify": "none"}}
        path = write_profile(
            tmp_path, leader, kafka, name="stripped", database=keys, producer={"start": "now", "retry_seconds": 1}
        )
        for relay.tls_for in (0, 1):
            assert "SSL is required" in refused("cdc-producer", path, "--until-current")
        relay.tls_for = 0
        assert "SSL is required" in refused("cdc-consumer", path, "--until-current")


def test_a_certificate_that_nobody_vouches_for(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    path = write_profile(tmp_path, leader, kafka, name="certificate", database={"tls": {"verify": "full"}})
    for program in ("cdc-producer", "cdc-consumer"):
        line = refused(program, path)
        assert "certificate verify failed" in line
        assert "database.tls" in line
