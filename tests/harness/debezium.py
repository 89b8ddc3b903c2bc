"""Debezium itself: its MySQL connector in a worker of Kafka Connect, beside the producer, for comparisons."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cdc.sandbox.fetch.jars import fetched_jars, java
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql
from cdc.sandbox.server.process import Process, free_port

__all__ = ["VERSION", "debezium", "source_settings", "write_properties"]

VERSION = "3.4.1.Final"
_CONNECT = "4.1.1"  # the version of Kafka Connect that this Debezium is built with
_ARTIFACTS = (
    f"io.debezium:debezium-connector-mysql:{VERSION}",
    f"org.apache.kafka:connect-runtime:{_CONNECT}",
    f"org.apache.kafka:connect-json:{_CONNECT}",
    "org.slf4j:slf4j-simple:1.7.36",
)


@contextmanager
def debezium(
    folder: Path, leader: MySql, kafka: Kafka, *, prefix: str, settings: Mapping[str, str], schemas: bool = False
) -> Iterator[Process]:
    """Debezium's connector on ``leader``, with its topics behind ``prefix``; ``settings`` are keys of the connector.
    With ``schemas`` its messages have schemas.
    """
    jars = fetched_jars(f"debezium-{VERSION}", _ARTIFACTS, label=f"Debezium {VERSION}")
    folder.mkdir()
    servers = kafka.bootstrap_servers
    worker = {
        "bootstrap.servers": servers,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": str(schemas).lower(),
        "value.converter.schemas.enable": str(schemas).lower(),
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "1000",
        "producer.max.request.size": "100000000",
        "listeners": f"http://127.0.0.1:{free_port()}",
        "plugin.discovery": "service_load",
    }
    connector = source_settings(leader, kafka, prefix=prefix) | {
        "name": prefix,
        # Debezium stops at a statement that it can't parse, and at days such as 2023-02-29, unless it may pass them by.
        "event.processing.failure.handling.mode": "warn",
        "inconsistent.schema.handling.mode": "warn",
        "schema.history.internal.skip.unparseable.ddl": "true",
    }
    files = [
        write_properties(folder / "worker.properties", worker),
        write_properties(folder / "connector.properties", connector | settings),
    ]
    process = Process("debezium", folder=folder)
    jvm = [str(java()), "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{jars[0].parent}/*"]
    process.start([*jvm, "org.apache.kafka.connect.cli.ConnectStandalone", *files], outlive=False)
    try:
        yield process
    finally:
        process.kill()


def source_settings(leader: MySql, kafka: Kafka, *, prefix: str, server_id: int = 77001) -> dict[str, str]:
    """The keys that Debezium's connector needs to read ``leader``."""
    return {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(leader.port),
        "database.user": USER,
        "database.password": PASSWORD,
        "database.server.id": str(server_id),
        "topic.prefix": prefix,
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
        "schema.history.internal.kafka.bootstrap.servers": kafka.bootstrap_servers,
        "schema.history.internal.kafka.topic": f"{prefix}.history",
    }


def write_properties(path: Path, keys: Mapping[str, str]) -> Path:
    """Writes a file of Java properties, and returns its path."""
    path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    return path
