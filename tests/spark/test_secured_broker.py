"""The audit's Kafka options with a broker that asks each client for a certificate."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

from cdc.config.profile import Kafka as KafkaProfile
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.process import free_port
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import messages
from cdc.spark.input.spans import span
from tests.harness.keeper import jvm
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.spark

PASSWORD = "in the key's file"


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def make_certificates(folder: Path) -> None:
    """A CA, and certificates by it of the broker, which is 127.0.0.1, and of a client, whose key has a password."""
    new = ["req", "-x509", "-newkey", "rsa:2048", "-days", "2"]
    openssl(folder, *new, "-nodes", "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem")
    by_ca = ["-CA", "ca.pem", "-CAkey", "ca.key"]
    address = ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    openssl(
        folder, *new, *by_ca, *address, "-nodes", "-subj", "/CN=broker", "-keyout", "broker.key", "-out", "broker.crt"
    )
    client = ["-nodes", "-subj", "/CN=client", "-addext", "basicConstraints=critical,CA:FALSE"]
    openssl(folder, *new, *by_ca, *client, "-keyout", "plain.key", "-out", "client.crt")
    # As the hint says to.
    hint = ["pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-in", "plain.key", "-out", "client.key"]
    openssl(folder, *hint, "-passout", f"pass:{PASSWORD}")
    (folder / "broker.pem").write_text((folder / "broker.key").read_text() + (folder / "broker.crt").read_text())


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[Kafka, str]]:
    """A broker, where all may do all, and the address at which it asks for certificates and looks at ACLs."""
    make_certificates(tmp_path)
    plain, secured, controller = (free_port() for _ in range(3))
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        "ssl.client.auth": "required", "ssl.keystore.type": "PEM", "ssl.truststore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "broker.pem"), "ssl.truststore.location": str(tmp_path / "ca.pem"),
        "auto.create.topics.enable": "true", "super.users": "User:ANONYMOUS",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    }  # fmt: skip
    broker = Kafka(tmp_path / "kafka", port=plain, settings=settings, jvm=jvm()).start()
    yield broker, f"127.0.0.1:{secured}"
    broker.kill()


# Those that docs/deployment.md has for what reads by Spark. Its consumers have groups, of which they use nothing.
ACLS = ((ResourceType.TOPIC, "secured"), (ResourceType.GROUP, "cdc-producer"))


def acl(kind: ResourceType, name: str) -> AclBinding:
    pattern, allowed = ResourcePatternType.PREFIXED, AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, "User:CN=client", "*", AclOperation.READ, allowed)


def test_a_client_with_a_certificate(broker: tuple[Kafka, str], tmp_path: Path, spark: SparkSession) -> None:
    kafka, address = broker
    admin = kafka.admin()
    properties = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.pem": (tmp_path / "client.crt").read_text(),
        "ssl.key.location": str(tmp_path / "client.key"),
        "ssl.key.password": PASSWORD,
    }
    profile = KafkaProfile(bootstrap_servers=address, topic="secured", librdkafka=properties)
    for each in ACLS:
        admin.create_acls([acl(*each)])[acl(*each)].result(LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce("secured", b"a record")
    assert producer.flush(LIMIT_SECONDS) == 0
    del producer  # else it tries to connect for as long as pytest keeps it
    (found,) = messages(spark, span(profile), options=kafka_options(profile)).collect()
    assert bytes(found["value"]) == b"a record"
