"""Every case: its records are as the file says, and the follower then holds what the leader holds."""

from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.case import as_far_as, cases, load
from tests.checks.compare import content, databases, numbers_given_twice
from tests.harness.programs import as_json, records, run_well, write_profile

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("path", cases(), ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    case = load(path)
    before = set(databases(leader))
    topic = f"case-{case.name}"
    source = write_profile(
        tmp_path, leader, kafka, name="leader", topic=topic, resource=case.name, producer={"start": "now"}
    )
    run_well("cdc-producer", source, "--until-current")
    with leader.root() as connection, connection.cursor() as cursor:
        for statement in case.statements:
            cursor.execute(statement)
    run_well("cdc-producer", source, "--until-current")
    found = as_json(source)
    assert [as_far_as(wanted, record) for wanted, record in zip(case.records, found, strict=True)] == case.records

    target = write_profile(tmp_path, follower, kafka, name="follower", topic=topic, resource=case.name)
    log = run_well("cdc-consumer", target, "--until-current")
    assert " conflict " not in log
    created = set(databases(leader)) - before
    assert created, "a case makes a database of its own"
    for database in created:
        assert content(follower, database) == content(leader, database)
    assert not numbers_given_twice(follower, records(source))
