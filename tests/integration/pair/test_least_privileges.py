"""The accounts of docs/privileges.md have exactly the privileges that it takes to copy, replicate and capture."""

import re
import subprocess
from pathlib import Path

import pytest

from cdc.sandbox.fetch.mysql_programs import mysql_programs
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import own_name, records, run, run_well
from tests.harness.server_fixtures import MySqlFactory

pytestmark = pytest.mark.integration

GRANTS = Path(__file__).parents[3] / "cdc/sandbox"
PASSWORD = "least-of-all"
PASSWORD_OF_FILES = "choose-a-password"


def created(server: MySql, name: str) -> dict[str, str]:
    """Runs a file of cdc/sandbox as its page says; returns the keys of a profile for the account."""
    text = (GRANTS / f"{name}.sql").read_text(encoding="utf-8")
    (user,) = set(re.findall(r"TO '+(\w+)'+@", text))
    client = [*mysql_programs().client, "--no-defaults", f"--socket={server.socket}", "--user=root"]
    done = subprocess.run(
        client, input=text.replace(PASSWORD_OF_FILES, PASSWORD), text=True, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    return {"user": user, "password": PASSWORD}


def test_exactly_these_privileges_are_enough(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    leader, follower, name = mysql_server(server_id=1), mysql_server(server_id=2), own_name(tmp_path)
    reader, applier, capture = (
        {"database": created(server, each)}
        for server, each in (
            (leader, "leader_reader"), (follower, "follower_applier"), (follower, "follower_reader"),
        )
    )  # fmt: skip
    filters = {"include_dbs": [name, "cdc"]}
    pair = Pair.make(
        tmp_path, leader, follower, kafka, name=name, source=reader | {"producer": {"start": "copy"}}, target=applier,
        capture=capture, filters=filters,
    )  # fmt: skip
    pair.on_leader(
        f"CREATE DATABASE {name}",
        f"USE {name}",
        "CREATE TABLE t (id INT PRIMARY KEY, n INT, j JSON)",
        "INSERT INTO t VALUES (1, 1, '{}'), (2, 2, NULL)",
        *objects("copied"),
    )
    run_well("cdc-producer", pair.capture, "--until-current")
    pair.replicate()
    pair.on_leader(f"USE {name}", *objects("replicated"), "INSERT INTO t VALUES (3, 3, '[]')",
                   "UPDATE t SET n = 7 WHERE id = 1", "CREATE TABLE u AS SELECT * FROM t", "DROP TABLE u")  # fmt: skip
    pair.replicate()
    run_well("cdc-producer", pair.capture, "--until-current")
    assert content(leader, name) == content(follower, name)
    with follower.root(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT copied_double(1), replicated_double(2), (SELECT SUM(d) FROM replicated_view)")
        assert cursor.fetchall() == ((2, 4, 24),)
    assert {each.uri.database for each in records(pair.capture)} == {name, "cdc"}
    status = run("cdc-consumer", pair.target, "--status").stdout
    assert all(f"{which}_{kind}" in status for which in ("copied", "replicated") for kind in ("trigger", "event"))
    for program, profile, *more in (
        ("cdc-producer", pair.source), ("cdc-consumer", pair.target, "--leader", pair.source),
        ("cdc-producer", pair.capture),
    ):  # fmt: skip
        done = run(program, profile, "--check", *more)
        assert (done.returncode, "problem " in done.stdout) == (0, False), done.stdout
    run_well("cdc-producer", pair.source, "--copy", f"{name}.t", "--until-current")


def objects(name: str) -> tuple[str, ...]:
    """Statements of root, and so with root as the definer, that create one object of each kind."""
    return (
        f"CREATE FUNCTION {name}_double(n INT) RETURNS INT DETERMINISTIC RETURN n * 2",
        f"CREATE PROCEDURE {name}_forget() DELETE FROM t WHERE n > 100",
        f"CREATE VIEW {name}_view AS SELECT id, {name}_double(n) AS d FROM t",
        f"CREATE TRIGGER {name}_trigger BEFORE INSERT ON t FOR EACH ROW SET NEW.n = NEW.n",
        f"CREATE EVENT {name}_event ON SCHEDULE EVERY 1 YEAR DO DELETE FROM t WHERE n > 100",
    )
