"""How the programs log in to MySQL: under TLS or not at all, and with passwords of any characters."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import toml
from pymysql import OperationalError

from cdc.consumer.literals.values import quoted
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.service.mysql_connection import connected
from tests.harness.programs import refused, run, run_well, running, write_profile
from tests.harness.relay import Relay
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import until

pytestmark = pytest.mark.integration


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def changed(path: Path, **database: object) -> Path:
    """The same profile with other keys of the database."""
    content = toml.loads(path.read_text(encoding="utf-8"))
    content["database"] |= database
    other = path.with_stem(f"{path.stem}-changed")
    other.write_text(toml.dumps(content), encoding="utf-8")
    return other


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
    assert not cipher(server)


def test_tls_is_used_where_the_server_has_it(leader: MySql) -> None:
    assert cipher(leader)


def cipher(server: MySql) -> str:
    """What encrypts a connection whose settings say nothing of TLS; empty for none."""
    with connected(unix_socket=str(server.socket), user="root") as connection, connection.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        found: str = cursor.fetchone()[1]
        return found


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


def test_a_password_of_any_characters(
    tmp_path: Path, leader: MySql, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From each place, under TLS and without, to producer and consumer; a colon and quotes need no care either."""
    password = "pä€'\":#😀"
    account = f"CREATE USER wörter IDENTIFIED WITH caching_sha2_password BY {quoted(password)}"
    grants = "SELECT, RELOAD, PROCESS, REPLICATION SLAVE, REPLICATION CLIENT"
    execute(leader, "SET sql_log_bin = 0", account, f"GRANT {grants} ON *.* TO wörter")
    monkeypatch.setenv("WORDS", password)
    (tmp_path / "words").write_text(password + "\n", encoding="utf-8")
    places = ({"password": password}, {"password_env": "WORDS"}, {"password_file": str(tmp_path / "words")})
    with Relay(leader.port) as relay:
        for number, (place, tls) in enumerate([*((place, False) for place in places), (places[0], True)]):
            # Where nothing asks for TLS, a server that has it is spoken to with it all the same.
            relay.tls_for = 1 << 30 if tls else 0
            own = {"port": relay.port, "user": "wörter", "password": ""} | place
            own |= {"tls": {"verify": "none"}} if tls else {}
            path = write_profile(tmp_path, leader, kafka, name=f"words-{number}", producer={"start": "now"},
                                 database=own)  # fmt: skip
            execute(leader, "FLUSH PRIVILEGES")  # so that the server asks for the password itself, not for its hash
            run_well("cdc-producer", path, "--until-current")
            execute(leader, "FLUSH PRIVILEGES")
            run_well("cdc-consumer", path, "--status")
        assert "Access denied" in refused("cdc-consumer", changed(path, user="fluvio"), "--status")


def test_the_last_line_is_json_where_the_log_is(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    def profile(name: str) -> Path:
        return write_profile(
            tmp_path, leader, kafka, name=name, log={"format": "json"}, database={"password": "a-wrong-password"}
        )  # fmt: skip

    path = profile("no-such-topic")
    audit = ["--leader", path, "--follower", profile("no-other-topic"), "--report", tmp_path / "report"]
    for program, *arguments in (
        ("cdc-producer", path), ("cdc-consumer", path, "--until-current"), ("cdc-consumer", path, "--status"),
        ("cdc-tail", path), ("cdc-audit", *audit),
    ):  # fmt: skip
        done = run(program, *arguments)
        assert done.returncode == 2, done.stderr
        last = [json.loads(line) for line in done.stderr.splitlines()][-1]
        assert last["program"] == program
        assert "Access denied" in last["error"] or last["error"].startswith("no such topic")


def test_another_password_while_the_programs_run(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """New connections have the new one, whichever key gives it; while the command fails, the programs wait."""
    servers = leader, follower
    secret, broken, name = tmp_path / "secret", tmp_path / "broken", "another_password"
    secret.write_text("first")
    command = tmp_path / "command"
    command.write_text(f"#!/bin/sh\n[ ! -e {broken} ] && cat {secret}\n")
    command.chmod(0o700)
    for server in servers:
        execute(
            server, "SET sql_log_bin = 0", "CREATE USER rotated IDENTIFIED BY 'first'", "GRANT ALL ON *.* TO rotated"
        )
    execute(servers[0], f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    profiles = [
        write_profile(
            tmp_path, server, kafka, name=f"{name}_{number}", topic=name, producer={"start": "now"},
            database={"user": "rotated", "password": "", "password_command": [str(command)]},
        )
        for number, server in enumerate(servers)
    ]  # fmt: skip
    execute(servers[1], f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY)")
    run_well("cdc-producer", profiles[0], "--until-current")
    with running("cdc-producer", profiles[0]), running("cdc-consumer", profiles[1]):
        execute(servers[0], f"INSERT INTO {name}.t VALUES (1)")
        until(lambda: (1,) in execute(servers[1], f"SELECT id FROM {name}.t"), what="the row")
        # The producer's connection stays, and a copy opens others.
        rotate(secret, servers)
        execute(servers[1], f"DELETE FROM {name}.t")
        run_well("cdc-producer", profiles[0], "--copy", f"{name}.t")
        until(lambda: (1,) in execute(servers[1], f"SELECT id FROM {name}.t"), what="the row that is copied")
        broken.touch()
        rotate(secret, servers)
        for server in servers:
            for (connection,) in execute(server, _CONNECTIONS):
                with suppress(OperationalError):  # it has ended by itself
                    execute(server, f"KILL {connection}")
            until(lambda server=server: not execute(server, _CONNECTIONS), what="the end of the connections")
        broken.unlink()
        execute(servers[0], f"INSERT INTO {name}.t VALUES (2)")
        until(lambda: (2,) in execute(servers[1], f"SELECT id FROM {name}.t"), what="the row")
    for server in servers:
        execute(server, "SET sql_log_bin = 0", "DROP USER rotated")


_CONNECTIONS = "SELECT id FROM information_schema.processlist WHERE user = 'rotated'"


def rotate(secret: Path, servers: Sequence[MySql]) -> None:
    """Gives the account another password, and the file that has it."""
    secret.write_text(f"{secret.read_text()}+")
    for server in servers:
        execute(server, "SET sql_log_bin = 0", f"ALTER USER rotated IDENTIFIED BY '{secret.read_text()}'")
