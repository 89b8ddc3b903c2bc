"""consumer.start: a mysqldump of the leader becomes a follower of a topic that has gone on meanwhile."""

import json
import signal
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from cdc.config.topic_names import PER_TABLE, SINGLE
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.dump import dump, restore
from tests.harness.pair import Pair
from tests.harness.programs import own_name, records, refused, run, run_well, write_profile
from tests.harness.topic import Stage, number
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration

UNTIL = "--until-current"
BEFORE = (
    "CREATE TABLE k (id INT PRIMARY KEY, n INT)",
    "CREATE TABLE bare (n INT)",
    "CREATE TABLE gone (id INT PRIMARY KEY)",
    "INSERT INTO k VALUES (1, 1), (2, 2)",
    "INSERT INTO bare VALUES (1), (1), (2)",
    "ALTER TABLE k ADD COLUMN a INT DEFAULT 3",
    "CREATE TRIGGER t BEFORE INSERT ON k FOR EACH ROW SET NEW.n = NEW.n + 1",
    "DROP TABLE gone",
    "CREATE TABLE made AS SELECT * FROM k",
    "UPDATE k SET n = 5 WHERE id = 1",
)
AFTER = (
    "INSERT INTO bare VALUES (1), (3)",
    "CREATE TABLE gone (id INT PRIMARY KEY)",
    "INSERT INTO gone VALUES (7)",
    "ALTER TABLE bare ADD COLUMN a INT DEFAULT 4",
    "DELETE FROM bare WHERE n = 2",
    "INSERT INTO k (id, n) VALUES (3, 3)",
    "UPDATE k SET n = 6 WHERE id = 1",
)


@pytest.mark.parametrize("layout", [SINGLE, PER_TABLE])
def test_a_copy_is_attached(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, layout: str) -> None:
    name = own_name(tmp_path)
    keys = {
        "kafka": {"layout": layout, "prefix": f"{name}."},
        "filters": {"include_dbs": [name]},
        "producer": {"start": "now"},
    }
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=keys, target=keys)

    def attached(copy: str) -> Path:
        more = keys | {"consumer": {"start": copy}}
        return write_profile(tmp_path, follower, kafka, name="attached", resource=name, topic=name, **more)

    pair.on_leader(
        f"CREATE DATABASE {name}", f"CREATE TABLE {name}.early (n INT)", f"INSERT INTO {name}.early VALUES (1)"
    )
    run_well("cdc-producer", pair.source, UNTIL)
    pair.on_leader(*BEFORE, database=name)
    text, held = dump(leader, name)
    pair.on_leader(*AFTER, database=name)
    run_well("cdc-producer", pair.source, UNTIL)
    restore(follower, text)

    # What the copy lacks and the topic does not have would be missing for good.
    early = f"{held.partition(':')[0]}:1"
    assert "the topic begins after transactions that the copy lacks: " in refused(
        "cdc-consumer", attached(early), UNTIL
    )
    # The follower knows better: a dump sets gtid_purged, unless it is told not to.
    other = uuid.uuid4()
    with follower.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"SET GLOBAL gtid_purged = '+{other}:1-3'")
    assert f"has executed {other}:1-3 of the" in refused("cdc-consumer", attached(f"{held},{other}:1-2"), UNTIL)
    # Killed when the note of a statement that it passes over is sent, not yet committed; then after that.
    statements = {record.query: record.sequence for record in records(pair.source) if record.operation == "Query"}
    profile = attached(held)
    for query in (BEFORE[1], BEFORE[5]):
        sequence = statements[query]
        done = run("killed_consumer", profile, "after the intent", str(sequence))
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert checkpoint(follower, name) == sequence - 1
    # What is passed over is what was noted, whatever the profile says.
    assert "began from a copy that held" in refused("cdc-consumer", attached(f"{held},{uuid.uuid4()}:1"), UNTIL)
    run_well("cdc-consumer", pair.target, UNTIL)
    assert "consumer.start has no effect any more" in run_well("cdc-consumer", attached(held), UNTIL)
    assert content(follower, name) == content(leader, name)
    status = run("cdc-consumer", pair.target, "--status").stdout
    assert f"began from   a copy of the leader with the transactions {held}\n" in status
    assert "CREATE DEFINER" in status  # the trigger, for a promotion


def test_a_leader_without_gtids(stage: Stage, kafka: Kafka) -> None:
    """Its records name no GTID; the commit log is one of an earlier version, which began before its first record."""
    log = f"{stage.name}.commits"
    admin = kafka.admin()  # kept while the answer is on its way
    admin.create_topics([NewTopic(log, 1, 1)])[log].result(LIMIT_SECONDS)
    entry = {"next_sequence": 0, "counts": {}, "gtid_set": ""}
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(log, json.dumps(entry).encode(), key=stage.name.encode())
    assert producer.flush(LIMIT_SECONDS) == 0
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    (record,) = stage.topic.transaction([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
    record["transaction"]["id"] = "binlog.000003:1002"
    stage.topic.send_raw(record)
    profile = stage.profile.read_text()
    stage.profile.write_text(profile.replace("[consumer]", f'[consumer]\nstart = "{uuid.uuid4()}:1-9"'))
    assert "binlog.000003:1002 has no GTID, so it is not known whether" in refused("cdc-consumer", stage.profile, UNTIL)
    assert stage.checkpoint() == 1


def checkpoint(server: MySql, resource: str) -> int:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT sequence FROM cdc.checkpoint WHERE resource = %s", (resource,))
        return int(cursor.fetchone()[0])
