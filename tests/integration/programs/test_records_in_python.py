"""``cdc.records``: a leader's records in Python, each once and in order, by themselves and by whole transactions."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition

import cdc
from cdc.errors import PromiseError, UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import begin_now, run_well, write_profile
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration

DATABASE = "records_in_python"


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_records_in_python(leader: MySql, kafka: Kafka, tmp_path: Path, layout: str) -> None:
    name = f"{DATABASE}_{layout}"
    kafka_keys = {"layout": layout} | ({"prefix": f"{name}."} if layout == "per_table" else {})
    profile = write_profile(
        tmp_path, leader, kafka, name=name, kafka=kafka_keys, producer={"start": "now"}, filters={"include_dbs": [name]}
    )
    begin_now(profile, leader)
    execute(
        leader,
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.a (id INT PRIMARY KEY, price DECIMAL(5, 2), at DATE)",
        f"CREATE TABLE {name}.b (id INT)",
        "BEGIN", f"INSERT INTO {name}.a VALUES (1, 1.5, '2026-02-03'), (2, NULL, '0000-00-00')",
        f"INSERT INTO {name}.b VALUES (7)", "COMMIT",
        f"UPDATE {name}.a SET id = 3 WHERE id = 2",
    )  # fmt: skip
    run_well("cdc-producer", profile, "--until-current")
    assert [record.sequence for record in cdc.records(profile)] == [0, 1, 2, 3, 4, 5]
    transactions = list(cdc.records(profile).transactions())
    assert [len(each.records) for each in transactions] == [1, 1, 1, 2, 1]
    assert all(each.gtid and each.committed <= datetime.now(UTC) for each in transactions)
    changes = [change for each in transactions[3:] for change in each.changes()]
    assert [(each.kind, each.table, each.key, each.after and each.after["id"]) for each in changes] == [
        ("insert", "a", ("id",), 1), ("insert", "a", ("id",), 2), ("insert", "b", (), 7), ("update", "a", ("id",), 3),
    ]  # fmt: skip
    assert changes[1].after == {"id": 2, "price": None, "at": "0000-00-00"}
    assert changes[3].before == changes[1].after
    assert next(cdc.records(str(profile)).changes()).statement.startswith("CREATE DATABASE")
    # From a sequence within a transaction on only whole ones follow; a time counts by commits.
    assert [each.records[0].sequence for each in cdc.records(profile, since=4).transactions()] == [5]
    since = transactions[4].committed
    assert {each.sequence for each in cdc.records(profile, since=since)} == {
        each.records[0].sequence for each in transactions if each.committed >= since
    }
    follows(leader, profile, name)
    if layout == "single":
        begins_late(kafka, profile, name)


def begins_late(kafka: Kafka, profile: Path, name: str) -> None:
    """What retention has deleted is told to who asks for it by its number."""
    admin = kafka.admin()
    (deleted,) = admin.delete_records([TopicPartition(name, 0, 3)]).values()
    deleted.result(LIMIT_SECONDS)
    first = next(iter(cdc.records(profile))).sequence
    assert 0 < first <= 3
    assert next(iter(cdc.records(profile, since=first))).sequence == first
    with pytest.raises(PromiseError, match=f"a gap: sequence {first - 1} is missing, {first} follows"):
        next(iter(cdc.records(profile, since=first - 1)))


def follows(leader: MySql, profile: Path, name: str) -> None:
    """With ``follow`` an iteration gets what comes later, until it is stopped."""
    following, found = cdc.records(profile, since=5, follow=True), list[int]()
    reading = threading.Thread(target=lambda: found.extend(each.sequence for each in following))
    reading.start()
    try:
        execute(leader, f"DELETE FROM {name}.a")
        run_well("cdc-producer", profile, "--until-current")
        until(lambda: [each.sequence for each in cdc.records(profile)][-1] == 6, what="the record in Kafka")
    finally:
        # An iteration that is stopped may not have read all records that are in Kafka by then.
        until(lambda: found == [5, 6] or not reading.is_alive(), what="the record in the iteration")
        following.stop()
        reading.join(LIMIT_SECONDS)
    assert found == [5, 6]


def test_what_is_not_there_is_told(leader: MySql, kafka: Kafka, tmp_path: Path) -> None:
    profile = write_profile(tmp_path, leader, kafka, name=DATABASE, producer={"start": "now"})
    with pytest.raises(UserError, match="no such topic"):
        list(cdc.records(profile))
    with pytest.raises(UserError, match="no such file"):
        cdc.records(tmp_path / "none.toml")
    with pytest.raises(AttributeError, match="no attribute 'record'"):
        _ = cdc.record  # type: ignore[attr-defined]


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        for statement in statements:
            cursor.execute(statement)
