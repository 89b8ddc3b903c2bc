"""librdkafka's settings on which exactly once depends: a profile overrides none of them."""

import threading
from typing import Any

import pytest
from confluent_kafka import KafkaError

from cdc.producer.sink import kafka_transactions
from cdc.producer.sink.kafka_transactions import BatchSize, KafkaTransactions, Reports
from cdc.producer.sink.plain_writes import PlainWrites

PROFILE = {
    "bootstrap.servers": "127.0.0.1:1", "linger.ms": 7, "transactional.id": "theirs", "enable.idempotence": False,
    "acks": "0", "enable.gapless.guarantee": False, "delivery.report.only.error": False,
}  # fmt: skip
REQUIRED: dict[type[KafkaTransactions], dict[str, object]] = {
    KafkaTransactions: {"transactional.id": "cdc-producer:toys:mysql-srv1", "delivery.report.only.error": True},
    PlainWrites: {
        "enable.idempotence": True, "acks": "all", "enable.gapless.guarantee": True, "delivery.report.only.error": True,
    },
}  # fmt: skip


class Recorder:
    """The settings with which librdkafka's producer would have been made."""

    made: dict[str, Any]

    def __init__(self, settings: dict[str, Any], **_: object) -> None:
        Recorder.made = settings

    def list_topics(self, topic: str, timeout: float) -> None:
        pass

    def init_transactions(self, timeout: float) -> None:
        pass


@pytest.mark.parametrize("kind", [*REQUIRED])
def test_a_profile_overrides_no_required_setting(
    kind: type[KafkaTransactions], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_transactions, "Producer", Recorder)
    size = BatchSize(1_000_000)
    kind.open(PROFILE, size, topic="toys", resource="mysql-srv1", stop=threading.Event())
    assert {name: Recorder.made[name] for name in REQUIRED[kind]} == REQUIRED[kind]
    assert Recorder.made["linger.ms"] == 7


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("127.0.0.1:9/bootstrap: Connect to ipv4#127.0.0.1:9 failed: Connection refused", False),
        ("sasl_ssl://kafka1:9093/bootstrap: Connect to ipv4#10.0.0.7:9093 failed: Connection refused", False),
        ("127.0.0.1:9/1: Disconnected", True),
        ("TxnCoordinator: 127.0.0.1:9: Connect to ipv4#127.0.0.1:9 failed: Connection refused", True),
        ("3/3 brokers are down", True),
    ],
)
def test_an_address_at_which_no_broker_answers_ends_no_session(text: str, lost: bool) -> None:
    """As long as others of the profile's answer: a producer that begins while one of three is away has to work."""
    reports = Reports({})
    reports.on_error(KafkaError(KafkaError._TRANSPORT, text))
    assert bool(reports.lost) == lost
