"""Brokers that want another protocol or login than the profile has: each program tells why they do not answer."""

from pathlib import Path
from typing import Any

import pytest

from cdc.kafka.broker_checks import Brokers
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.harness.programs import refused, write_profile
from tests.harness.server_fixtures import KafkaFactory

pytestmark = pytest.mark.integration

LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}


@pytest.fixture
def guarded(kafka_broker: KafkaFactory) -> str:
    """The address of a listener that lets alice in, by her password."""
    inner, outer, controller = free_port(), free_port(), free_port()
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alices-own-secret";'
    kafka_broker(
        port=inner,
        settings={
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{inner},GUARDED://127.0.0.1:{outer},CONTROLLER://127.0.0.1:{controller}",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.guarded.plain.sasl.jaas.config": login,
            # A client that fails at once tries it forty times a second, each of which costs a broker twenty ms.
            "listener.name.guarded.max.connection.creation.rate": "5",
        },
    )
    return f"127.0.0.1:{outer}"


def test_each_program_tells_why_the_brokers_do_not_answer(
    tmp_path: Path, leader: MySql, kafka: Kafka, guarded: str
) -> None:
    def profile(name: str, librdkafka: dict[str, Any]) -> Path:
        return write_profile(
            tmp_path, leader, kafka, name=name, kafka={"bootstrap_servers": guarded, "librdkafka": librdkafka},
            producer={"start": "now", "retry_seconds": 0}, consumer={"retry_seconds": 0},
        )  # fmt: skip

    wrong = profile("wrong", LOGIN | {"sasl.password": "nobodys-secret"})
    audit = ("cdc-audit", "--leader", wrong, "--follower", profile("other", LOGIN), "--report", tmp_path / "report")
    for program, *arguments in (("cdc-producer", wrong), ("cdc-consumer", wrong), ("cdc-tail", wrong), audit):
        line = refused(program, *arguments)
        assert "Invalid username or password" in line
        assert "sasl.* and ssl.*" in line
    assert "SSL handshake failed" in refused("cdc-tail", profile("tls", {"security.protocol": "SSL"}))
    assert "another security.protocol" in refused("cdc-tail", profile("plain", {}))
    check = Brokers({"bootstrap.servers": guarded} | LOGIN | {"sasl.password": "nobodys-secret"}).check([])
    assert "Invalid username or password" in check.says
    # The right one passes.
    assert "no such topic" in refused("cdc-tail", profile("right", LOGIN | {"sasl.password": "alices-own-secret"}))
