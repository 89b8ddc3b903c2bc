"""A part of a leader transaction that readers see without an entry of the commit log, as a late commit leaves it."""

import json
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from cdc.config.profile import load
from cdc.config.topic_names import Topics
from cdc.errors import PromiseError
from cdc.kafka.fragments import FRAGMENT_HEADER, cut
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.sink.kafka_sink import KafkaSink
from cdc.producer.sink.kafka_transactions import BatchSize
from cdc.producer.sink.record_parts import Message
from cdc.producer.sink.recovery import without_types
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark.input.spans import span
from tests.checks.compare import content
from tests.harness.programs import begin_now, json_lines, run_well, write_profile
from tests.harness.readable import until_readable

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_it_is_gone_on_from(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, layout: str) -> None:
    name = f"early_{layout}"

    def profile(server: MySql, topic: str, file: str) -> Path:
        return write_profile(
            tmp_path, server, kafka, name=file, topic=topic, resource=name, filters={"include_dbs": [name]},
            producer={"start": "now", "record_bytes": 1000}, kafka={"layout": layout, "prefix": f"{topic}."},
        )  # fmt: skip

    model, real = (profile(leader, topic, topic) for topic in (f"{name}_model", name))
    target = profile(follower, name, f"{name}_target")
    with leader.connect() as connection, connection.cursor() as cursor:
        for path in (model, real):
            begin_now(path, leader)
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"CREATE TABLE {name}.a (i INT PRIMARY KEY, t VARCHAR(500))")
        cursor.execute(f"INSERT INTO {name}.a VALUES (-1, '')")
        run_well("cdc-producer", real, "--until-current")
        run_well("cdc-consumer", target, "--until-current")
        before = len(json_lines(real))
        cursor.execute(f"CREATE TABLE {name}.b LIKE {name}.a")  # in per_table its topic is one that no entry knows
        cursor.execute("BEGIN")
        for number in range(12):
            cursor.execute(f"INSERT INTO {name}.{'ab'[number > 4]} VALUES ({number}, REPEAT('x', 500))")
        cursor.execute("COMMIT")
        run_well("cdc-producer", model, "--until-current")
        wanted = json_lines(model)
        names = Topics(name, layout=layout, prefix=f"{name}." if layout == "per_table" else "")
        tables = "b" + "a" * 5 + "b" * 3
        topics = [names.of_table(name, table) for table in tables]
        show(kafka, name, list(zip(topics, wanted[before:], strict=False)))
        # The consumer passes the part over, before the producer goes on and afterwards.
        run_well("cdc-consumer", target, "--until-current")
        run_well("cdc-producer", real, "--until-current")
        assert json_lines(real) == wanted
        run_well("cdc-consumer", target, "--until-current")
        assert content(leader, name) == content(follower, name)


@pytest.mark.parametrize("fragmented", [False, True])
def test_nothing_is_written_below_what_readers_see(kafka: Kafka, fragmented: bool) -> None:
    """Of a part with a hole nothing can be gone on from: its records would come after those that follow them."""
    name = f"early_hole_{fragmented}"

    def message(sequence: int) -> Message:
        uri = f"flv://{name}/d/t"
        place = {"fileName": "binlog.000001", "offset": 4 + sequence}
        transaction = {"id": "u:2", "index": sequence - 1, "last": sequence == 3, "ts_us": 1}
        body = {"uri": uri, "sequence": sequence, "bn_file": place, "transaction": transaction, "columns": ["i"]}
        body["operation"] = {"Add": {"rows": [{"cols": [{"SignedInteger": sequence}]}]}}
        return Message(name, uri.encode(), json.dumps(body, separators=(",", ":")).encode(), 0, [])

    def opened() -> KafkaSink:
        properties = {"bootstrap.servers": kafka.bootstrap_servers}
        topics = TopicAdmin(properties, Topics(name), partitions=1, replicas=1, retention_hours=0)
        size, stop = BatchSize(16_000_000), threading.Event()
        return KafkaSink.open(topics, size, resource=name, instance="i", reopening=False, stop=stop)

    entry = Entry(1, Position("binlog.000001", 4), "", "u", instance="i")
    sink = opened()
    sink.start(replace(entry, next_sequence=0))
    sink.write([message(0)])
    sink.commit(entry)
    sink.close()
    value = message(2).value
    assert isinstance(value, bytes)
    marks = list(cut(value, 100, sequence=2)) if fragmented else [(b"", value)]
    show(
        kafka,
        name,
        [(name, part.decode()) for _, part in marks],
        headers=[mark for mark, _ in marks],
        uri=f"flv://{name}/d/t",
    )
    with pytest.raises(PromiseError, match="record 1 is missing, and later ones are there"):
        opened()


@pytest.mark.parametrize(
    ("layout", "size"), [("single", 5000), ("per_table", 5000), ("single", 17_000_000)]
)  # the last one is read from disk
def test_a_record_whose_last_fragments_are_missing_is_completed(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, layout: str, size: int
) -> None:
    name, message_bytes = f"early_cut_{layout}_{size}", min(size // 5, 900_000)

    def profile(server: MySql, file: str) -> Path:
        return write_profile(
            tmp_path, server, kafka, name=file, topic=name, resource=name, filters={"include_dbs": [name]},
            producer={"start": "now", "message_bytes": message_bytes}, kafka={"layout": layout, "prefix": f"{name}."},
        )  # fmt: skip

    real, target = profile(leader, name), profile(follower, f"{name}_target")
    with leader.connect() as connection, connection.cursor() as cursor:
        begin_now(real, leader)
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"CREATE TABLE {name}.a (i INT PRIMARY KEY, t LONGTEXT)")
        cursor.execute(f"INSERT INTO {name}.a VALUES (-1, '')")
        run_well("cdc-producer", real, "--until-current")
        before = len(json_lines(real))
        cursor.execute("BEGIN")
        cursor.execute(f"INSERT INTO {name}.a VALUES (1, REPEAT('x', {size}))")
        cursor.execute(f"INSERT INTO {name}.a VALUES (2, 'y')")
        cursor.execute("COMMIT")
        # What the record will be: a producer of its own writes it into another topic.
        model = write_profile(
            tmp_path, leader, kafka, name="model", topic=f"{name}_model", resource=name,
            filters={"include_dbs": [name]}, kafka={"layout": layout, "prefix": f"{name}_model."},
        )  # fmt: skip
        run_well("cdc-producer", model, "--until-current")
        line = next(line for line in json_lines(model) if "xxxxx" in line)
        sequence = json.loads(line)["sequence"]
        line = line.replace(f'"sequence":{sequence},', f'"sequence":{before},')
        marks = list(cut(without_types(line.encode()), message_bytes, sequence=before))[:3]
        topic = Topics(name, layout=layout, prefix=f"{name}." if layout == "per_table" else "").of_table(name, "a")
        own = [mark for mark, _ in marks]
        seen = span(load(real).kafka)
        show(kafka, name, [(topic, part.decode()) for _, part in marks], headers=own, uri=f"flv://{name}/{name}/a")
        assert span(load(real).kafka) == replace(seen, fragmented=True)  # an audit would find no whole record there
        run_well("cdc-consumer", target, "--until-current")
        run_well("cdc-producer", real, "--until-current")
        cursor.execute(f"INSERT INTO {name}.a VALUES (3, 'z')")
        run_well("cdc-producer", real, "--until-current")
        run_well("cdc-consumer", target, "--until-current")
        assert content(leader, name) == content(follower, name)


def show(
    kafka: Kafka, name: str, lines: list[tuple[str, str]], *, headers: Sequence[bytes] = (), uri: str = ""
) -> None:
    """Commit these records, each in its topic, with no entry of the commit log."""
    admin = kafka.admin()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": f"{name} early"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for topic in {topic for topic, _ in lines} - admin.list_topics(timeout=10).topics.keys():
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    for (topic, line), mark in zip(lines, headers or [b""] * len(lines), strict=True):
        own = [(FRAGMENT_HEADER, mark)] if mark else []
        key = uri if mark else json.loads(line)["uri"]
        producer.produce(topic, line.encode(), key.encode(), headers=own)
    producer.commit_transaction(30)
    until_readable(admin, *{topic for topic, _ in lines})
