"""Servers as in production: TLS only, logins with SCRAM, ACLs, and users of MySQL with the least privileges."""

import datetime
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import toml
from confluent_kafka.admin import AclBindingFilter, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port, is_free
from cdc.sandbox.server.secured import LOGIN, SECRET, Certificates, create_account, tls_options
from cdc.sandbox.servers import TOPIC, Servers
from tests.harness.keeper import jvm
from tests.harness.leaked_secrets import note_secrets
from tests.harness.programs import refused, run, run_well, running
from tests.harness.token_endpoint import TokenEndpoint
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

_OF = {"cdc-producer": "producer", "cdc-consumer": "consumer", "cdc-tail": "producer"}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TokenEndpoint]:
    folder = tmp_path_factory.mktemp("tokens")
    certificates = Certificates(folder)
    certificates.write()
    made = TokenEndpoint(folder, certificates, user=LOGIN, secret="a-secret-for-tokens", seconds=10)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, tokens: TokenEndpoint) -> Iterator[Servers]:
    note_secrets({"password": SECRET})
    made = Servers(tmp_path_factory.mktemp("secured"), secure=True)
    made.kafka._jvm = (*jvm(), *tokens.jvm())
    made.kafka.settings |= tokens.broker_settings("secured", beside="SCRAM-SHA-512")
    made.start(say=lambda _: None)
    execute(made.leader, "CREATE DATABASE flvDb", "CREATE TABLE flvDb.t (id INT PRIMARY KEY)")
    yield made
    made.kill()


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def changed(servers: Servers, folder: Path, name: str, **tables: dict[str, Any]) -> Path:
    """A profile of the sandbox with other keys."""
    content = toml.loads(getattr(servers.profiles, name).read_text(encoding="utf-8"))
    for table, keys in ({"producer": {"retry_seconds": 0}, "consumer": {"retry_seconds": 0}} | tables).items():
        content[table] = content.get(table, {}) | keys
    path = folder / f"{name}-{len(list(folder.iterdir()))}.toml"
    path.write_text(toml.dumps(content), encoding="utf-8")
    return path


def test_all_programs_work_there(servers: Servers, tmp_path: Path) -> None:
    profiles = servers.profiles
    for server in (servers.leader, servers.follower):
        assert execute(server, "SELECT @@require_secure_transport") == [(1,)]
    run_well("cdc-producer", profiles.follower, "--until-current")
    execute(servers.leader, "INSERT INTO flvDb.t VALUES (1)")
    run_well("cdc-producer", profiles.producer, "--until-current")
    run_well("cdc-consumer", profiles.consumer, "--until-current")
    run_well("cdc-producer", profiles.producer, "--copy", "flvDb.t")
    run_well("cdc-producer", profiles.producer, "--until-current")
    run_well("cdc-consumer", profiles.consumer, "--until-current")
    run_well("cdc-producer", profiles.follower, "--until-current")
    assert execute(servers.follower, "SELECT * FROM flvDb.t") == [(1,)]
    for program, *arguments in (
        ("cdc-producer", profiles.producer, "--check"), ("cdc-producer", profiles.producer, "--copy-status"),
        ("cdc-consumer", profiles.consumer, "--check", "--leader", profiles.producer),
        ("cdc-consumer", profiles.consumer, "--status"), ("cdc-tail", profiles.producer),
        ("cdc-tail", profiles.follower), ("cdc-tail", profiles.follower, "--check"),
        ("cdc-web", profiles.producer, profiles.consumer, "--check", "--listen", f"127.0.0.1:{free_port()}"),
        ("cdc-lake", profiles.producer, "--to", tmp_path, "--check"),
        ("cdc-seed", "--leader", profiles.producer, "--follower", profiles.consumer, "--check"),
        ("cdc-audit", "--leader", profiles.producer, "--follower", profiles.follower, "--report", tmp_path, "--check"),
    ):  # fmt: skip
        done = run(program, *arguments)
        assert (done.returncode, done.stdout.count("problem ")) == (0, 0), done
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_tokens_instead_of_passwords(servers: Servers, tokens: TokenEndpoint, tmp_path: Path) -> None:
    """Tokens are for the user of the other tests, so with that one's ACLs. `make test` has
    test_all_programs_work_there.
    """
    source, target = with_tokens(servers, tokens, tmp_path)
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", target, "--until-current")
    with running("cdc-producer", source), running("cdc-consumer", target):
        inserted_until_applied(servers, 20)
        # Brokers end a connection once its token has expired, unless the client has logged in with another one.
        expiry = tokens.last_expiry
        until(lambda: time.time() > expiry, what="the end of the first tokens")
        inserted_until_applied(servers, 21)
    assert "id=21" in run("cdc-tail", source).stdout
    assert run("cdc-consumer", target, "--check").returncode == 0
    content = toml.loads(source.read_text())
    content["kafka"]["librdkafka"]["sasl.oauthbearer.client.secret"] = "not-the-secret"
    source.write_text(toml.dumps(content))
    line = refused("cdc-producer", source)
    assert "Failed to acquire SASL OAUTHBEARER token" in line
    assert "hint: check security.protocol, sasl.*" in line


@pytest.mark.long
def test_programs_outlast_an_endpoint_that_gives_no_tokens(
    servers: Servers, tokens: TokenEndpoint, tmp_path: Path
) -> None:
    """`make test` has test_all_programs_work_there."""
    source, target = with_tokens(servers, tokens, tmp_path)
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", target, "--until-current")
    with running("cdc-producer", source), running("cdc-consumer", target):
        inserted_until_applied(servers, 30)
        tokens.is_down = True
        expiry = tokens.last_expiry
        until(lambda: time.time() > expiry + 2, what="the end of all tokens")
        line = refused("cdc-tail", source)
        tokens.is_down = False
        inserted_until_applied(servers, 31)
    assert "Does https://127.0.0.1:" in line


def with_tokens(servers: Servers, tokens: TokenEndpoint, folder: Path) -> list[Path]:
    """The profiles of producer and consumer with tokens instead of a password."""
    brokers = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(servers.certificates.authority)}
    librdkafka = brokers | tokens.client_properties()
    note_secrets(librdkafka)
    waits = {"producer": {"retry_seconds": 300}, "consumer": {"retry_seconds": 300}}
    return [
        changed(servers, folder, name, kafka={"librdkafka": librdkafka}, **waits) for name in ("producer", "consumer")
    ]


def inserted_until_applied(servers: Servers, number: int) -> None:
    execute(servers.leader, f"INSERT INTO flvDb.t VALUES ({number})")
    until(lambda: (number,) in execute(servers.follower, "SELECT * FROM flvDb.t"), what=f"row {number}")


@pytest.mark.long
def test_programs_on_spark_and_the_page_work_there(servers: Servers, tokens: TokenEndpoint, tmp_path: Path) -> None:
    """`make test` has test_all_programs_work_there, and test_secured_broker for what Spark's client needs."""
    profiles, port = servers.profiles, free_port()
    for program, profile in (
        ("cdc-producer", profiles.follower), ("cdc-producer", profiles.producer), ("cdc-consumer", profiles.consumer),
        ("cdc-producer", profiles.follower),
    ):  # fmt: skip
        run_well(program, profile, "--until-current")
    source, _ = with_tokens(servers, tokens, tmp_path)
    for number, leader in enumerate((profiles.producer, source)):
        report = tmp_path / f"report{number}"
        run_well("cdc-audit", "--leader", leader, "--follower", profiles.follower, "--report", report)
        run_well("cdc-repair", leader, "--report", report, "--dry-run")
        run_well("cdc-lake", leader, "--to", tmp_path / f"lake{number}", "--format", "parquet")
    third = MySql(tmp_path / "third", server_id=3, extra_args=tls_options(servers.certificates)).start()
    with ExitStack() as opened:
        opened.callback(third.kill)
        create_account(third, "follower_applier.sql")
        empty = changed(servers, tmp_path, "consumer", database={"port": third.port})
        run_well("cdc-seed", "--leader", profiles.producer, "--follower", empty)
        run_well("cdc-consumer", empty, "--until-current")
        assert execute(third, "SELECT * FROM flvDb.t") == execute(servers.leader, "SELECT * FROM flvDb.t")
    with running("cdc-web", source, profiles.consumer, "--listen", f"127.0.0.1:{port}"):
        until(lambda: not is_free(port), what="the page is served")
        # Leader, Kafka and follower.
        until(lambda: page_at(port).count(">answers<") == 3, what=lambda: page_at(port))


def page_at(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/") as answer:
        return str(answer.read().decode())


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "keys", "programs", "named"),
    [
        ("database", {"tls": {"ca": "{other}"}}, ("cdc-producer", "cdc-consumer"), "certificate verify failed"),
        ("database", {"ip_or_host": "localhost"}, ("cdc-producer", "cdc-consumer"), "not valid for 'localhost'"),
        ("kafka", {"ssl.ca.location": "{other}"}, tuple(_OF), "certificate could not be verified"),
        ("kafka", {"bootstrap_servers": "localhost"}, tuple(_OF), "ssl.ca.location, not expired, and for this address"),
        ("kafka", {"sasl.password": "a-wrong-password"}, tuple(_OF), "SASL authentication error"),
    ],
)
def test_what_is_wrong_is_named(
    servers: Servers, tmp_path: Path, table: str, keys: dict[str, Any], programs: tuple[str, ...], named: str
) -> None:
    """`make test` has test_an_expired_certificate_is_named."""
    other = Certificates(servers.folder / "other")
    other.write()
    keys = toml.loads(toml.dumps(keys).replace("{other}", str(other.authority)))
    for program in programs:
        of_profile = keys
        if table == "kafka":
            given = toml.loads(getattr(servers.profiles, _OF[program]).read_text(encoding="utf-8"))["kafka"]
            of_profile = {"librdkafka": given["librdkafka"] | keys}
            if host := keys.get("bootstrap_servers"):
                of_profile = {"bootstrap_servers": given["bootstrap_servers"].replace("127.0.0.1", host)}
        profile = changed(servers, tmp_path, _OF[program], **{table: of_profile})
        line = refused(program, profile, *([] if program == "cdc-tail" else ["--until-current"]))
        assert named in line
        assert "hint: " in line


def test_an_expired_certificate_is_named(servers: Servers, tmp_path: Path) -> None:
    """A server loads none that has expired, but goes on with one that expires."""
    soon = Certificates(servers.folder / "soon")
    lifetime = datetime.timedelta(seconds=3)
    soon.write(lifetime=lifetime)
    expired = datetime.datetime.now() + lifetime
    profile = changed(servers, tmp_path, "producer", database={"tls": {"ca": str(soon.authority)}})
    try:
        with_certificates(servers.leader, soon)
        until(lambda: datetime.datetime.now() > expired, what="its end")
        line = refused("cdc-producer", profile, "--until-current")
    finally:
        with_certificates(servers.leader, servers.certificates)
    assert "certificate has expired" in line
    assert "not expired" in line


def with_certificates(server: MySql, files: Certificates) -> None:
    paths = {"ssl_ca": files.authority, "ssl_cert": files.server, "ssl_key": files.key}
    settings = ", ".join(f"{name} = '{path}'" for name, path in paths.items())
    execute(server, f"SET GLOBAL {settings}", "ALTER INSTANCE RELOAD TLS")


@pytest.mark.long
def test_rights_that_are_revoked_while_a_program_runs(servers: Servers, tmp_path: Path) -> None:
    """`make test` has test_acls, which takes away each right before the programs start."""

    def revoked(
        program: str, name: str, revoke: Callable[[], object], give_back: Callable[[], object], status: int = 2
    ) -> str:
        """The line with which the program ends."""
        log = tmp_path / f"{len(list(tmp_path.iterdir()))}.log"
        profile = changed(servers, tmp_path, name)
        with log.open("w") as stderr, running(program, profile, stderr=stderr) as process:
            started = "info replicating" if program == "cdc-producer" else "info start "
            until(lambda: started in log.read_text(), what="its start", seconds=60)
            try:
                revoke()
                until(lambda: process.poll() is not None, what="its end", seconds=60)
            finally:
                give_back()
        said = log.read_text()
        assert (process.returncode, "Traceback" in said) == (status, False), said
        (line,) = [line for line in said.splitlines() if line.startswith(f"{program}: ")]
        return line

    def of_mysql(server: MySql, user: str, privilege: str) -> tuple[Callable[[], object], Callable[[], object]]:
        def take() -> None:
            execute(server, "SET sql_log_bin = 0", f"REVOKE {privilege} ON *.* FROM {user}")
            # A connection keeps its global privileges, so they count when it is lost.
            for (number,) in execute(server, f"SELECT id FROM information_schema.processlist WHERE user = '{user}'"):
                execute(server, f"KILL {number}")

        return take, lambda: execute(server, "SET sql_log_bin = 0", f"GRANT {privilege} ON *.* TO {user}")

    run_well("cdc-producer", servers.profiles.producer, "--until-current")
    line = revoked("cdc-producer", "producer", *of_mysql(servers.leader, "cdc_reader", "REPLICATION SLAVE"))
    assert "GRANT REPLICATION SLAVE ON *.* TO 'cdc_reader'@'%'" in line
    take, give = of_mysql(servers.follower, "cdc_applier", "INSERT")

    def take_and_write() -> None:
        take()
        execute(servers.leader, "INSERT INTO flvDb.t VALUES (50)")
        run_well("cdc-producer", servers.profiles.producer, "--until-current")

    line = revoked("cdc-consumer", "consumer", take_and_write, give, 3)
    assert "INSERT command denied to user 'cdc_applier'" in line
    assert "fix the account, its grants" in line

    admin = servers.kafka.admin()

    def forbid(operation: AclOperation) -> None:
        every = AclBindingFilter(
            ResourceType.TOPIC, TOPIC, ResourcePatternType.PREFIXED, f"User:{LOGIN}", "*", operation,
            AclPermissionType.ALLOW,
        )  # fmt: skip
        admin.delete_acls([every])[every].result(LIMIT_SECONDS)
        execute(servers.leader, f"INSERT INTO flvDb.t VALUES ({100 + operation.value})")

    def allow() -> None:
        servers.allow()

    line = revoked("cdc-producer", "producer", lambda: forbid(AclOperation.WRITE), allow)
    assert re.search("the ACL WRITE on this leader's topics is missing", line)
    line = revoked("cdc-consumer", "consumer", lambda: forbid(AclOperation.READ), allow)
    assert "if it exists, the ACL READ on the topic is missing" in line
