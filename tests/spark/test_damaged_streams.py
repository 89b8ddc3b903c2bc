"""Records damaged at random: each damage is found, with topic, partition and offset, or changes nothing.

Found is a break of the stream, rows or statements that are not what they were (drift to the audit), or a before image
that does not continue its row. Nothing is changed where all that a verdict rests on is there, whatever its order.

Every stream is damaged in one place and judged as one side of its own, so that one Spark job judges them all.
"""

import json
import os
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.model.gtid import StatementSequences
from cdc.spark.compare.fold import changes, fold, segments
from cdc.spark.compare.row_drift import compare
from cdc.spark.ddl.lineage import lineage
from cdc.spark.input.records import parse
from cdc.spark.streams.contents import Contents, statements, survey
from cdc.spark.streams.integrity import Break, Earlier, integrity
from cdc.spark.streams.transactions import transactions
from tests.generators.streams import Stream, Table, query
from tests.harness.seed import SEED

pytestmark = pytest.mark.spark

STREAMS = int(os.environ.get("CDC_DAMAGED_RECORDS", "300"))
RESOURCE = "mysql-srv1"
RAN_NONE = StatementSequences(RESOURCE)
SCHEMA = "side STRING, partition STRING, offset BIGINT, value BINARY"


@dataclass(frozen=True)
class Damaged:
    """A stream and what is left of it: its messages, what was done to them, from which offset on it shows."""

    messages: list[bytes]
    damage: str
    offset: int


def stream(chance: random.Random, database: str) -> list[bytes]:
    """Transactions of one record and of several, statements among them, on a table with a key and one without."""
    made = Stream(resource=RESOURCE)
    keyed, keyless = Table(f"{database}/toy", ["id", "name"], ["id"]), Table(f"{database}/pet", ["name", "owner"])
    made.transaction(query("CREATE DATABASE d", database, ("CreateDatabase", database)))
    for table in (keyed, keyless):
        made.transaction(query("CREATE TABLE t (…)", database, ("CreateTable", table.name)))
    names = ["ball", "bone", "mouse"]
    for number in range(4):
        row, name = (number, chance.choice(names)), (chance.choice(names), None)
        made.transaction(keyed.add(row), keyless.add(name, name))
        made.transaction(keyed.update((row, (number, "rope"))))
    made.transaction(keyed.delete((0, "rope")), keyed.update(((1, "rope"), (9, "rope"))), keyless.add(("x", "y")))
    made.transaction(query("ALTER TABLE t …", database, ("AlterTable", keyed.name)))
    return [message.encode() for message in made.messages]


def flip(chance: random.Random, messages: list[bytes], at: int) -> None:
    body = bytearray(messages[at])
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    messages[at] = bytes(body)


def drop(chance: random.Random, messages: list[bytes], at: int) -> None:
    del messages[at]


def double(chance: random.Random, messages: list[bytes], at: int) -> None:
    messages.insert(chance.randint(0, len(messages)), messages[at])


def swap(chance: random.Random, messages: list[bytes], at: int) -> None:
    other = chance.randrange(len(messages))
    messages[at], messages[other] = messages[other], messages[at]


def truncate(chance: random.Random, messages: list[bytes], at: int) -> None:
    messages[at] = messages[at][: chance.randrange(len(messages[at]))]


def change(chance: random.Random, messages: list[bytes], at: int) -> None:
    """One value in the record becomes another, as deep as it may be."""
    body = json.loads(messages[at])
    node = body
    while True:
        key = chance.choice(sorted(node) if isinstance(node, dict) else range(len(node)))
        if not isinstance(node[key], dict | list) or not node[key]:
            break
        node = node[key]
    old = node[key]
    node[key] = chance.choice([other for other in (None, True, -1, 7, "x", "Null", {}, []) if other != old])
    messages[at] = json.dumps(body).encode()


def tear(chance: random.Random, messages: list[bytes], at: int) -> None:
    """A record passes to another transaction, or the transaction ends where it does not."""
    body = json.loads(messages[at])
    part = body["transaction"]
    part |= chance.choice([{"id": "another:1"}, {"index": part["index"] + 1}, {"last": not part["last"]}])
    messages[at] = json.dumps(body).encode()


DAMAGES = [flip, flip, flip, drop, double, swap, truncate, change, change, tear]


def damaged(chance: random.Random, sound: list[bytes]) -> Damaged:
    messages, at = list(sound), chance.randrange(len(sound))
    deed = chance.choice(DAMAGES)
    deed(chance, messages, at)
    first = next((n for n, pair in enumerate(zip(sound, messages, strict=False)) if pair[0] != pair[1]), len(messages))
    return Damaged(messages, deed.__name__, min(first, len(messages)))


def frame(spark: SparkSession, streams: dict[str, list[bytes]]) -> DataFrame:
    rows = [
        (name, f"{name}/0", offset, bytearray(message))
        for name, messages in streams.items()
        for offset, message in enumerate(messages)
    ]
    return parse(spark.createDataFrame(rows, SCHEMA)).persist()


def folded(spark: SparkSession, records: DataFrame, contents: Mapping[str, Contents]) -> DataFrame:
    """What each stream folds to, whatever names are in it; its own comes before a database's."""
    acts = statements(records).result()
    lives = [
        replace(
            each, database=f"{name}/{each.database}", owner=each.owner and (f"{name}/{each.owner[0]}", each.owner[1])
        )
        for name, held in contents.items()
        for each in lineage(held.tables, acts.get(name, []))
    ]
    named = records.withColumn("database", F.concat_ws("/", "side", "database"))
    return fold(changes(named, segments(spark, lives)))


def relevant(messages: list[bytes]) -> object:
    """What a verdict rests on, in the order of sequences; None where a message is no record.

    A NULL is like no value, and a transaction goes by its first record, whatever its id.
    """
    try:
        bodies = sorted((json.loads(message) for message in messages), key=lambda body: body["sequence"])
        first = {repr(body["transaction"]["id"]): body["sequence"] for body in reversed(bodies)}
        return [(first[repr(body["transaction"]["id"])], *essence(body)) for body in bodies]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def essence(body: Any) -> tuple[object, ...]:
    """What a verdict rests on in one record."""
    part, columns = body["transaction"], body.get("columns", [])
    acts = [(act["action"], act["uri"], act.get("to"), act.get("like")) for act in body.get("affects", [])]
    ((operation, content),) = body["operation"].items()
    rows = [
        {kind: {c: v for c, v in zip(columns, image, strict=True) if v != "Null"} for kind, image in row.items()}
        for row in (content["rows"] if operation != "Query" else [])
    ]
    # Statements go by what they affect.
    uri = body["uri"] if operation != "Query" else None
    return body["sequence"], part["index"], part["last"], uri, body.get("key"), operation, rows, acts


def test_every_damage_is_found_or_changes_nothing(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(SEED)
    sound = {f"s{number}": stream(chance, f"d{number:05}") for number in range(STREAMS)}
    streams = {name: damaged(chance, messages) for name, messages in sound.items()}
    before, after = frame(spark, sound), frame(spark, {name: each.messages for name, each in streams.items()})
    held, contents = survey(before).result(), survey(after).result()
    whole, _ = transactions(after, sequences=RAN_NONE, ends={side: each.end for side, each in contents.items()})
    breaks: dict[str, list[Break]] = {}
    for found in integrity(after, whole, contents, dict.fromkeys(streams, RESOURCE)).examples:
        breaks.setdefault(found.side, []).append(found)
    compared = compare(folded(spark, before, held), folded(spark, after, contents))
    compared = compared.where("kind IS NOT NULL OR follower_breaks > 0")
    drifted = {row["database"].partition("/")[0] for row in compared.select("database").distinct().collect()}
    # The last transaction without its end is one that is still to come.
    drifted |= {row["side"] for row in whole.where("state = 'open'").select("side").distinct().collect()}
    acts = [statements(records).result() for records in (before, after)]
    tally: dict[str, int] = {"broken": 0, "unlike": 0, "harmless": 0}
    wrong = []
    for name, each in streams.items():
        well = True
        if name in breaks:
            tally["broken"] += 1
            well = near(breaks[name], each)
        elif name in drifted or acts[0][name] != acts[1].get(name) or held[name].end != contents[name].end:
            tally["unlike"] += 1
        else:
            tally["harmless"] += 1
            well = relevant(each.messages) == relevant(sound[name])
        if not well:
            wrong.append(
                (name, each.damage, each.offset, breaks.get(name), each.messages[each.offset : each.offset + 1])
            )
    with capsys.disabled():
        print(f"\n{STREAMS} damaged records: {tally} (CDC_SEED={SEED})")
    assert wrong == []
    assert all(tally.values())


def transaction_id(message: bytes) -> str:
    """The id of the record's transaction; empty where the message is no record."""
    try:
        return str(json.loads(message)["transaction"]["id"])
    except (ValueError, KeyError, TypeError):
        return ""


def near(found: list[Break], each: Damaged) -> bool:
    """Whether a break is where the damage is, or in the transaction around it, or names the place.

    Damage to the id of a transaction puts the record into another one, which may be further away.
    """
    places = [each.offset, *(at for at, message in enumerate(each.messages) if each.messages.count(message) > 1)]
    ids = list(map(transaction_id, each.messages))
    places += [at for at, found_id in enumerate(ids) if found_id and ids[each.offset : each.offset + 1] == [found_id]]
    return any(
        abs(one.offset - place) <= 3 or f"first at offset {each.offset} of" in one.detail
        for one in found
        for place in places
    )


@pytest.mark.parametrize("few", [True, False])
def test_a_transaction_of_earlier_that_comes_again_is_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, few: bool
) -> None:
    if not few:
        monkeypatch.setattr("cdc.spark.streams.integrity._FEW", 0)
    toy, made = Table("db/toy", ["id"], ["id"]), Stream(resource=RESOURCE)
    for number, gtid in enumerate(["a:1", "a:2", "a:3", "a:1"]):
        made.transaction(toy.add((number,)), gtid=gtid)
    whole = [message.encode() for message in made.messages]
    earlier, _ = transactions(frame(spark, {"leader": whole[:2]}), sequences=RAN_NONE, ends={"leader": 1})
    records = frame(spark, {"leader": whole}).where("offset >= 2")
    now, _ = transactions(records, sequences=RAN_NONE, ends={"leader": 3})
    checked = Earlier({"leader": 2}, earlier)
    found = integrity(records, now, survey(records).result(), {"leader": RESOURCE}, earlier=checked, incomplete=False)
    assert [(each.kind, each.offset, each.detail) for each in found.examples] == [
        ("torn", 3, "transaction a:1: it came before, and comes again with sequence 3 to 3")
    ]
