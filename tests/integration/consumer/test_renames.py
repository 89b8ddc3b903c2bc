"""A follower that has the leader's databases under other names: what it holds is the same."""

from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import refused, run_well, write_profile
from tests.harness.topic import Stage, number

pytestmark = pytest.mark.integration

HISTORY = """\
CREATE DATABASE renamed
USE renamed
CREATE TABLE owner (id INT PRIMARY KEY, name VARCHAR(20))
CREATE TABLE renamed.pet (id INT PRIMARY KEY, owner INT, FOREIGN KEY (owner) REFERENCES renamed.owner (id))
INSERT INTO owner VALUES (1, 'Diane'), (2, 'Harold')
INSERT INTO pet VALUES (1, 1), (2, 2), (3, 2)
CREATE VIEW renamed.pets AS SELECT p.id, o.name FROM renamed.pet p JOIN owner o ON p.owner = o.id
CREATE PROCEDURE forget(n INT) DELETE FROM `renamed`.pet WHERE id = n
CALL forget(2)
CREATE TABLE swap_a (i INT)
CREATE TABLE swap_b (j INT)
RENAME TABLE swap_a TO x, renamed.swap_b TO renamed.swap_a, x TO swap_b
INSERT INTO renamed.swap_a VALUES (7)
USE mysql
ALTER TABLE renamed.owner ADD renamed INT DEFAULT 5
CREATE TABLE renamed.taken AS SELECT id FROM renamed.pet
CREATE INDEX i ON renamed.taken (id)
DROP TABLE renamed.swap_b
ALTER DATABASE renamed CHARACTER SET latin1"""


def test_a_whole_history(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name, new = "renamed", "renamed copy"
    producer = write_profile(
        tmp_path, leader, kafka, name=name, resource=name, filters={"include_dbs": [name]}, producer={"start": "now"}
    )
    run_well("cdc-producer", producer, "--until-current")
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in HISTORY.splitlines():
            cursor.execute(statement)
    run_well("cdc-producer", producer, "--until-current")
    keys = {"resource": name, "topic": name, "filters": {"include_dbs": [name]}, "renames": {name: new}}
    log = run_well(
        "cdc-consumer",
        write_profile(tmp_path, follower, kafka, name="renaming_consumer", **keys),
        "--until-current",
    )
    assert " conflict " not in log
    ours, theirs = content(leader, name), content(follower, new)
    assert str(theirs).replace(new, name) == str(ours)
    assert ours["pet"]["rows"]
    with follower.connect(database=new) as connection, connection.cursor() as cursor:
        cursor.execute("CALL forget(1)")
        cursor.execute("SELECT * FROM pets")
        assert cursor.fetchall() == ((3, "Harold"),)
        cursor.execute(f"SHOW DATABASES LIKE '{name}'")
        assert cursor.fetchall() == ()


@pytest.fixture
def stage(tmp_path: Path, follower: MySql, kafka: Kafka, request: pytest.FixtureRequest) -> Stage:
    name = request.node.originalname[5:55]
    return Stage.make(tmp_path, follower, kafka, name=name, renames={name: f"{name}_2"})


def databases(stage: Stage) -> list[str]:
    found = stage.execute(f"SHOW DATABASES LIKE '{stage.name}%'", database="cdc")
    return [name for (name,) in found]


def test_a_statement_that_proves_nothing_is_refused(stage: Stage) -> None:
    stage.create_table(stage.name, "(i INT)")
    view = f"CREATE VIEW v AS SELECT {stage.name}.i FROM {stage.name}"
    stage.topic.send([stage.topic.query(view, ("CreateView", f"{stage.name}/v"), database=stage.name)])
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert f"it is ambiguous where a statement names the database {stage.name}, which is renamed: {view}" in line
    run_well("cdc-consumer", stage.profile, "--until-current", "--skip", "2")
    assert stage.execute("SHOW TABLES", database=f"{stage.name}_2") == [(stage.name,)]


def test_a_database_that_has_the_new_name_is_refused(stage: Stage) -> None:
    name = f"{stage.name}_2"
    stage.topic.send([stage.topic.query(f"CREATE DATABASE {name}", ("CreateDatabase", name))])
    line = refused("cdc-consumer", stage.profile, "--until-current")
    assert (
        f"two of the leader's databases would have the name {name} on the follower: {name} itself and {stage.name}"
        in line
    )
    stage.topic.send([stage.topic.add(f"{name}/t", ["i"], [number(1)])])
    assert databases(stage) == [name]


def test_filters_go_by_the_leaders_names(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    name = "renamed_and_filtered"
    new = f"{name}_2"
    stage = Stage.make(
        tmp_path, follower, kafka, name=name, renames={name: new}, filters={"exclude_dbs": [new]}
    )  # fmt: skip
    path = stage.create_table("t", "(i INT)")
    stage.topic.send([stage.topic.query(f"CREATE DATABASE {new}", ("CreateDatabase", new))])
    create = f"CREATE TABLE {new}.t (i INT)"
    stage.topic.send([stage.topic.query(create, ("CreateTable", f"{new}/t"), database=new)])
    stage.topic.send([stage.topic.add(f"{new}/t", ["i"], [number(1)]), stage.topic.add(path, ["i"], [number(2)])])
    stage.apply()
    assert stage.execute("SELECT * FROM t", database=new) == [(2,)]
    assert databases(stage) == [new]
