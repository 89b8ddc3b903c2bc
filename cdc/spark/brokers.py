"""The brokers as the audit needs them: which offsets a topic spans now, and a profile's properties in Spark's names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from cdc.errors import UserError
from cdc.profile import Kafka

__all__ = ["Span", "kafka_options", "span"]

_TIMEOUT_SECONDS = 10.0
_SAME_NAME = frozenset({"security.protocol", "ssl.endpoint.identification.algorithm"})
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class Span:
    """What of a topic is read: per partition the first offset and the one after the last, in Kafka's count."""

    topic: str
    partitions: Mapping[int, tuple[int, int]]

    @property
    def size(self) -> int:
        """Offsets spanned: the records, and the few markers of Kafka transactions between them."""
        return sum(end - start for start, end in self.partitions.values())


def span(kafka: Kafka) -> Span:
    """The offsets ``kafka.topic`` holds now, up to the last committed Kafka transaction.

    Raises UserError where the brokers can't be reached or have no such topic.
    """
    where = f"Kafka at {kafka.bootstrap_servers}"
    # The errors come to us as exceptions; librdkafka's own lines on standard error would only double them.
    try:
        admin = AdminClient({**kafka.librdkafka, "bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        topics = admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        if kafka.topic not in topics:
            raise UserError(f"no such topic: {kafka.topic}", where=where, hint="start cdc-producer, which creates it")
        partitions = list(topics[kafka.topic].partitions)
        starts = _offsets(admin, kafka.topic, partitions, "earliest")
        ends = _offsets(admin, kafka.topic, partitions, "latest")
    except KafkaException as error:
        raise UserError(
            f"cannot ask the brokers: {error.args[0].str()}", where=where, hint="check kafka.bootstrap_servers"
        ) from None
    return Span(kafka.topic, {number: (starts[number], ends[number]) for number in partitions})


def _offsets(admin: AdminClient, topic: str, partitions: list[int], end: str) -> dict[int, int]:
    wanted = {TopicPartition(topic, number): getattr(OffsetSpec, end)() for number in partitions}
    futures = admin.list_offsets(
        wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT_SECONDS
    )
    return {place.partition: future.result().offset for place, future in futures.items()}


def kafka_options(kafka: Kafka) -> dict[str, str]:
    """The options of Spark's Kafka source that reach the same brokers as the profile's librdkafka properties.

    Only what secures the connection is carried over; the other properties tune librdkafka itself. Raises UserError for
    a security property that has no counterpart here: reading without it would be another connection than was meant.
    """
    options = {"bootstrap.servers": kafka.bootstrap_servers}
    given = {name: str(value) for name, value in kafka.librdkafka.items()}
    for name, value in given.items():
        if not name.startswith(("security.", "sasl.", "ssl.", "enable.ssl", "enable.sasl")):
            continue
        if name in _SAME_NAME:
            # librdkafka says "none" where the Java client wants nothing.
            options[name] = "" if value == "none" else value
        elif name in ("sasl.mechanism", "sasl.mechanisms"):
            options |= _login(value, given)
        elif name == "ssl.ca.location":
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": value}
        elif name not in ("sasl.username", "sasl.password"):
            raise UserError(
                f"{name} is not supported by the audit",
                where=f"profile key kafka.librdkafka.{name}",
                hint="give the audit profiles of its own, with SASL PLAIN or SCRAM, or TLS with ssl.ca.location",
            )
    return {f"kafka.{name}": value for name, value in options.items()}


def _login(mechanism: str, given: Mapping[str, Any]) -> dict[str, str]:
    if mechanism not in _LOGIN_MODULES:
        raise UserError(
            f"SASL mechanism {mechanism} is not supported by the audit",
            where="profile key kafka.librdkafka.sasl.mechanism",
            hint=f"one of {', '.join(_LOGIN_MODULES)}",
        )
    user, password = (_quoted(given.get(name, "")) for name in ("sasl.username", "sasl.password"))
    entry = f"{_LOGIN_MODULES[mechanism]} required username={user} password={password};"
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": entry}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
