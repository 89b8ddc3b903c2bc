"""A column of the follower stores each value of the leader's column or refuses it, where the consumer says that it
fits; and the types are known after a restart, where no record has them.
"""

import itertools
import json
from base64 import b64encode
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from cdc.config.profile import load
from cdc.consumer.errors import Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import literal
from cdc.consumer.plan.column_fit import fits
from cdc.sandbox.server.kafka import Kafka
from tests.harness.programs import run
from tests.harness.topic import Stage
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration


def texts(*values: str) -> list[dict[str, Any]]:
    return [{"String": value} for value in values]


def blobs(*values: bytes) -> list[dict[str, Any]]:
    return [{"Blob": b64encode(value).decode()} for value in values]


def seconds(tag: str, *micros: int) -> list[dict[str, Any]]:
    day, clock = {"year": 2026, "month": 11, "day": 26}, {"hour": 12, "minute": 30, "second": 59}
    made = {"DateTime": day | clock, "Time": {"negative": True} | clock, "Timestamp": {"unix_time": 1795696245}}
    return [{tag: made[tag] | {"subsecond": each}} for each in micros]


UTF8, CYRILLIC = " character set utf8mb4", " character set cp1251"
# Types as records have them, with values of which another column could make others.
VALUES: dict[str, list[dict[str, Any]]] = {
    "tinyint": [{"SignedInteger": each} for each in (-128, 1, 3)],
    "bigint unsigned": [{"UnsignedInteger": each} for each in (2, 20260101, 2**53 + 1, 2**64 - 1)],
    "decimal(5,2)": [{"Decimal": each} for each in ("1.55", "-999.99")],
    "decimal(5,0)": [{"Decimal": each} for each in ("15", "-3")],
    "float": [{"Float": each} for each in (0.10000000149011612, 1.401298464324817e-45)],
    "double": [{"Double": each} for each in (0.1, 5e-324)],
    "bit(8)": [{"Bit": each} for each in (70, 255)],
    "year": [{"Year": each} for each in (0, 2026)],
    "date": [{"Date": {"year": 2026, "month": 11, "day": 26}}],
    "datetime": seconds("DateTime", 0),
    "datetime(3)": seconds("DateTime", 999_000),
    "time": seconds("Time", 0),
    "time(6)": seconds("Time", 999_999),
    "timestamp": seconds("Timestamp", 0),
    "timestamp(3)": seconds("Timestamp", 999_000),
    f"char(4){UTF8}": texts("a", "я€", "1", "晡", "\U00010041"),
    f"varchar(3){UTF8}": texts("a ", "я€", "2  "),
    f"varchar(4){CYRILLIC}": [
        *texts("a   "),
        {"Text": {"charset": "cp1251", "base64": b64encode(b"\xff\x98").decode()}},
    ],
    "varchar(5) character set cp932": texts("晙"),
    "varchar(5) character set tis620": texts("ก"),
    f"tinytext{UTF8}": texts("  ", "b" + " " * 254),
    f"text{UTF8}": texts("a ", " " * 30_000),
    "binary(3)": blobs(b"abc", b"a  ", b"a\0\0"),
    "binary(4)": blobs(b"abcd", b"a   ", b"a\0\0\0"),
    "varbinary(4)": blobs(b"abcd", b"a   ", b"a\0", b""),
    "blob": blobs(b"a ", b" " * 300),
    f"enum('a','b','1'){UTF8}": [{"Enum": each} for each in ("a", "b", "1", 2)],
    f"enum('b','a','1'){UTF8}": [{"Enum": each} for each in ("a", "b", "1", 2)],
    f"enum('A','b'){UTF8}": [{"Enum": each} for each in ("A", 2)],
    f"set('a','b'){UTF8}": [{"Set": each} for each in (["a"], ["a", "b"], 2)],
    f"set('b','a','c'){UTF8}": [{"Set": each} for each in (["a"], ["b", "c"], 2)],
    "json": [{"Json": {"b": 1, "a": [1.5, "x"]}}],
}


def shown(value: dict[str, Any], kind: str) -> str:
    """What must be equal where two columns have the same value: for text its characters, for members the number too."""
    if kind.startswith(("enum", "set")):
        return "CONCAT(c + 0, ':', c)"
    if "character" in kind:
        return "HEX(CONVERT(c USING utf8mb4))"
    if kind == "date" or "Date" in value:
        return "CAST(c AS DATETIME)"
    return "HEX(c)" if "Blob" in value else "c + 0" if not kind.startswith("json") else "CAST(c AS CHAR)"


def stored(session: Session, table: str, kind: str, value: dict[str, Any]) -> Any:
    """The value that the column has then, or None where the server refuses it."""
    try:
        session.run([f"INSERT INTO {table} VALUES ({literal(value)})".encode()])
    except Refused:
        return None
    ((found,),) = session.rows(f"SELECT {shown(value, kind)} FROM {table}")
    session.run([b"ROLLBACK"])
    return found


def test_a_column_that_fits_stores_each_value_or_refuses_it(stage: Stage) -> None:
    tables = {kind: f"{stage.name}.t{number}" for number, kind in enumerate(VALUES)}
    with Session(load(stage.profile).database) as session:
        session.connect()
        session.run([f"CREATE DATABASE IF NOT EXISTS {stage.name}".encode()])
        for kind, table in tables.items():
            session.run([f"CREATE TABLE {table} (c {kind})".encode()])
        own = {kind: [stored(session, tables[kind], kind, each) for each in values] for kind, values in VALUES.items()}
        assert not [kind for kind, found in own.items() if None in found]
        for there, here in itertools.permutations(VALUES, 2):
            if fits(there, here):
                found = [stored(session, tables[here], here, value) for value in VALUES[there]]
                changed = [each for each in zip(own[there], found, strict=True) if each[1] not in (None, each[0])]
                assert not changed, (there, here, changed)


def test_types_are_known_after_a_restart(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY, d DECIMAL(5,2))")
    row = lambda number, value: [{"SignedInteger": number}, {"Decimal": value}]  # noqa: E731
    stage.topic.send([stage.topic.add(path, ["id", "d"], row(1, "1.25"), key=["id"], types=["int", "decimal(5,2)"])])
    stage.apply()
    stage.execute("ALTER TABLE t CHANGE d D DECIMAL(5,1)")
    listed = run("cdc-consumer", stage.profile, "--check")
    assert listed.returncode == 2
    assert "column d is decimal(5,1) and on the leader decimal(5,2)" in listed.stdout
    stage.topic.send([stage.topic.add(path, ["id", "d"], row(2, "2.25"), key=["id"])])
    done = run("cdc-consumer", stage.profile, "--until-current")
    assert done.returncode == 3
    assert "column d is decimal(5,1) and on the leader decimal(5,2)" in done.stderr
    assert stage.execute("SELECT id FROM t") == [(1,)]
    # The leader changes its column as well: then both are equal again.
    alter = stage.topic.query("ALTER TABLE t MODIFY d DECIMAL(5,1)", ("AlterTable", path), database=stage.name)
    stage.execute("ALTER TABLE t MODIFY d DECIMAL(5,2)")
    added = stage.topic.add(path, ["id", "d"], row(3, "3.2"), key=["id"], types=["int", "decimal(5,1)"])
    stage.topic.send([alter])
    stage.apply()
    # No row has come since, so the types on the leader are not known.
    assert "could store other values" not in run("cdc-consumer", stage.profile, "--check").stdout
    stage.topic.send([added])
    stage.apply()
    assert [str(d) for (d,) in stage.execute("SELECT d FROM t ORDER BY id")] == ["1.3", "2.3", "3.2"]


def test_types_in_records_that_the_base_copy_has_are_known(stage: Stage, kafka: Kafka) -> None:
    log = f"{stage.name}.commits"
    admin = kafka.admin()  # kept while the answer is on its way
    admin.create_topics([NewTopic(log, 1, 1)])[log].result(LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    entry = {"next_sequence": 0, "counts": {}, "gtid_set": ""}
    producer.produce(log, json.dumps(entry).encode(), key=stage.name.encode())
    assert producer.flush(LIMIT_SECONDS) == 0
    path = stage.create_table("t", "(id INT PRIMARY KEY, d DECIMAL(5,2))")
    row = lambda number, value: [{"SignedInteger": number}, {"Decimal": value}]  # noqa: E731
    (copied,) = stage.topic.transaction(
        [stage.topic.add(path, ["id", "d"], row(1, "1.25"), key=["id"], types=["int", "decimal(5,2)"])]
    )
    source, _, last = copied["transaction"]["id"].rpartition(":")
    stage.topic.send_raw(copied)
    stage.topic.send([stage.topic.add(path, ["id", "d"], row(2, "2.25"), key=["id"])])
    # The schema of the copy was written by hand.
    stage.execute(f"CREATE DATABASE {stage.name}", database="mysql")
    stage.execute("CREATE TABLE t (id INT PRIMARY KEY, d DECIMAL(5,1))", "INSERT INTO t VALUES (1, 1.3)")
    profile = stage.profile.read_text()
    stage.profile.write_text(profile.replace("[consumer]", f'[consumer]\nstart = "{source}:1-{last}"'))
    done = run("cdc-consumer", stage.profile, "--until-current")
    assert done.returncode == 3, done.stderr
    assert "column d is decimal(5,1) and on the leader decimal(5,2)" in done.stderr
    assert stage.execute("SELECT id FROM t") == [(1,)]
