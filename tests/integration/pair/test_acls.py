"""The ACLs of docs/deployment.md: with exactly these the programs run, and without one they end at once and name it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from cdc.config.profile import load
from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark.input.spans import span
from tests.checks.compare import content
from tests.harness.keeper import SharedKafka, login
from tests.harness.pair import Pair
from tests.harness.programs import change_profile, refused, run, run_well
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration

NAME = "allowed"
STANDBY = f"cdc-producer:{NAME}:{NAME}"
Acl = tuple[ResourceType, str, AclOperation]


@pytest.fixture
def broker(kafka: SharedKafka) -> tuple[AdminClient, str]:
    """Who may do all there, and the address at which alice logs in, who may do what ACLs allow."""
    return kafka.admin(), kafka.guarded


def binding(acl: Acl, pattern: ResourcePatternType) -> AclBinding:
    kind, name, operation = acl
    return AclBinding(kind, name, pattern, "User:alice", "*", operation, AclPermissionType.ALLOW)


def allow(admin: AdminClient, acl: Acl, pattern: ResourcePatternType = ResourcePatternType.PREFIXED) -> None:
    wanted = binding(acl, pattern)
    admin.create_acls([wanted])[wanted].result(LIMIT_SECONDS)


def forbid(admin: AdminClient, acl: Acl, pattern: ResourcePatternType = ResourcePatternType.PREFIXED) -> None:
    kind, name, operation = acl
    unwanted = AclBindingFilter(kind, name, pattern, "User:alice", "*", operation, AclPermissionType.ALLOW)
    admin.delete_acls([unwanted])[unwanted].result(LIMIT_SECONDS)


TOPIC, GROUP, TRANSACTIONS = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID
READ, WRITE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
CREATES = (TOPIC, NAME, CREATE), "the ACL CREATE on this leader's topics"
WRITES = (TOPIC, NAME, WRITE), "the ACL WRITE on this leader's topics"
READS = (TOPIC, NAME, READ), "the ACL READ on the topic"
COMMITS = (TRANSACTIONS, f"cdc-producer:{NAME}", WRITE), "the ACL WRITE on the transactional id"
ASKS = (GROUP, "cdc-producer", READ), "the ACL READ on the consumer group cdc-producer"
APPLIES = (GROUP, f"cdc-consumer:{NAME}:", READ), f"the ACL READ on the consumer group cdc-consumer:{NAME}:127.0.0.1"
ASKS_TO_COPY = (TOPIC, f"{NAME}.copies", WRITE), "the ACL WRITE on this leader's topics"
ASKS_TO_CREATE = (TOPIC, f"{NAME}.copies", CREATE), "the ACL CREATE (WRITE, where it is there) on this leader's topics"
REPAIRS = ASKS_TO_COPY[0], ASKS_TO_CREATE[1]
SHOWS = (GROUP, "cdc-tail", READ), "the ACL READ on the consumer group cdc-tail"


def drifted(folder: Path) -> Path:
    """What an audit reports of a row that drifted, as far as a repair reads it."""
    table = {"database": NAME, "table": "t"}
    row = table | {"identity": {"i": '{"SignedInteger":1}'}, "keyed": True}
    counts = {"leader_rows": 1, "missing": 1, "extra": 0, "different": 0}
    body = {"version": 1, "leader": {"resource": NAME, "topic": NAME}, "verdict": "drift", "tables": [table | counts]}
    (folder / "report.json").write_text(json.dumps(body | {"drifted": [row], "schema": [], "schema_drift": 0}))
    return folder


def test_acls(tmp_path: Path, leader: MySql, follower: MySql, broker: tuple[AdminClient, str]) -> None:
    admin, address = broker
    own: dict[str, Any] = {
        "kafka": {"bootstrap_servers": address, "librdkafka": login("alice")}, "filters": {"include_dbs": [NAME]},
        "producer": {"start": "now", "retry_seconds": 0}, "consumer": {"retry_seconds": 0},
    }  # fmt: skip
    pair = Pair.make(tmp_path, leader, follower, Kafka(tmp_path), name=NAME, source=own, target=own)

    def needs(program: str, profile: Path, *needed: tuple[Acl, str], end: Sequence[str] = ("--until-current",)) -> None:
        """The program runs with the ACLs ``needed`` alone, and ends without any one of them, which it names."""
        for acl, _ in needed:
            allow(admin, acl)
        for acl, named in needed:
            forbid(admin, acl)
            # The consumer may have applied all by the time at which it hears of its group.
            assert named in refused(program, profile, *(() if (acl, named) == APPLIES else end))
            allow(admin, acl)
        run_well(program, profile, *end)

    needs("cdc-producer", pair.source, CREATES, WRITES, READS, COMMITS, ASKS)
    pair.on_leader(f"CREATE DATABASE {NAME}", f"CREATE TABLE {NAME}.t (i INT PRIMARY KEY)")
    needs("cdc-producer", pair.source, WRITES, READS, COMMITS, ASKS)
    change_profile(pair.source, producer={"standby": True})
    forbid(admin, ASKS[0])
    allow(admin, ASKS[0], ResourcePatternType.LITERAL)
    assert f"the consumer group {STANDBY}" in refused("cdc-producer", pair.source, "--until-current")
    assert f"at consumer group {STANDBY}" in run("cdc-producer", pair.source, "--check").stdout
    allow(admin, ASKS[0])
    run_well("cdc-producer", pair.source, "--until-current")
    assert run("cdc-producer", pair.source, "--check").returncode == 0
    change_profile(pair.source, producer={"standby": False})
    forbid(admin, ASKS[0], ResourcePatternType.LITERAL)
    for acl, _ in (CREATES, WRITES, READS, COMMITS, ASKS):
        forbid(admin, acl)
    allow(admin, READS[0])
    for program, profile, missing in (
        (
            "cdc-producer",
            pair.source,
            ("WRITE on the topic; at topic allowed;", "group; at consumer group cdc-producer"),
        ),
        (
            "cdc-consumer",
            pair.target,
            ("READ on the consumer group; at consumer group cdc-consumer:allowed:127.0.0.1",),
        ),
    ):
        listed = run(program, profile, "--check")
        assert (listed.returncode, [each for each in missing if each not in listed.stdout]) == (2, []), listed.stdout
    needs("cdc-consumer", pair.target, READS, APPLIES)
    assert content(leader, NAME) == content(follower, NAME)
    forbid(admin, APPLIES[0])
    # They only write.
    for acl in (READS[0], ASKS[0]):
        forbid(admin, acl)
    needs("cdc-producer", pair.source, ASKS_TO_CREATE, ASKS_TO_COPY, end=("--copy", f"{NAME}.t"))
    forbid(admin, ASKS_TO_CREATE[0])
    needs("cdc-repair", pair.source, REPAIRS, end=("--report", str(drifted(tmp_path))))
    forbid(admin, ASKS_TO_COPY[0])
    assert "the ACL READ on its topics is missing" in run("cdc-producer", pair.source, "--copy-status").stdout
    allow(admin, READS[0])
    needs("cdc-producer", pair.source, ASKS, end=("--copy-status",))
    forbid(admin, ASKS[0])
    needs("cdc-tail", pair.source, READS, SHOWS, end=())
    # What an audit, a lake and a seed ask before Spark reads.
    forbid(admin, SHOWS[0])
    kafka = load(pair.source).kafka
    with pytest.raises(UserError) as missing:
        span(kafka)
    assert ASKS[1] in missing.value.hint
    allow(admin, ASKS[0])
    assert span(kafka).size
