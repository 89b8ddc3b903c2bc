"""Brokers that want another protocol or login than the profile has: each program tells why they do not answer."""

from pathlib import Path
from typing import Any

import pytest

from cdc.kafka.broker_checks import Brokers
from cdc.sandbox.server.mysql import MySql
from tests.harness.keeper import SharedKafka, login
from tests.harness.programs import refused, write_profile

pytestmark = pytest.mark.integration

# A client that fails at once tries it forty times a second by default, each of which costs a broker twenty ms.
SELDOM = {"reconnect.backoff.ms": 1000, "reconnect.backoff.max.ms": 1000}
RIGHT = login("bob") | SELDOM
WRONG = RIGHT | {"sasl.password": "nobodys-secret"}


def test_each_program_tells_why_the_brokers_do_not_answer(tmp_path: Path, leader: MySql, kafka: SharedKafka) -> None:
    def profile(name: str, librdkafka: dict[str, Any]) -> Path:
        return write_profile(
            tmp_path, leader, kafka, name=name, kafka={"bootstrap_servers": kafka.guarded, "librdkafka": librdkafka},
            producer={"start": "now", "retry_seconds": 0}, consumer={"retry_seconds": 0},
        )  # fmt: skip

    wrong = profile("wrong", WRONG)
    audit = ("cdc-audit", "--leader", wrong, "--follower", profile("other", WRONG), "--report", tmp_path / "report")
    for program, *arguments in (("cdc-producer", wrong), ("cdc-consumer", wrong), ("cdc-tail", wrong), audit):
        line = refused(program, *arguments)
        assert "Invalid username or password" in line
        assert "sasl.* and ssl.*" in line
    assert "SSL handshake failed" in refused("cdc-tail", profile("tls", SELDOM | {"security.protocol": "SSL"}))
    assert "another security.protocol" in refused("cdc-tail", profile("plain", SELDOM))
    check = Brokers({"bootstrap.servers": kafka.guarded} | WRONG).check([])
    assert "Invalid username or password" in check.says
    # The right one passes.
    assert "the ACL READ on the topic is missing" in refused("cdc-tail", profile("right", RIGHT))
