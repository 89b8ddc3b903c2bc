"""What cdc-seed reads of records without parsing them is what Spark's parser reads, whatever their values are."""

import json
import os
import random
from base64 import b64encode
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from cdc.seed.fold import image_texts, leading_values, pattern
from cdc.spark.input.records import COPYING, LEADER, heads, parse, with_sequences
from cdc.spark.input.small_data import local_frame
from tests.harness.seed import SEED

pytestmark = pytest.mark.spark

RECORDS = int(os.environ.get("CDC_LEADING_RECORDS", "400"))
URI, OTHER, LATER = "flv://s/d/t", "flv://s/d/other", 10_000
PARTS = "uri STRING, first BIGINT, end BIGINT, pattern STRING, width INT"
COLUMNS = ["id", "rows", "operation"]
# What a text would have to be taken for the begin or the end of a row.
PIECES = (
    "a", "é", "😀", '"', "\\", "\n", "/", "\u007f", "\u2028", "]", "}", ",", '"cols":[', '{"cols":[', ']},{"cols":[',
    '],"after_cols":[', ']},{"before_cols":[', '{"Json', "]}]}}}", '"rows":[', ',"operation":{"Add":{', "Null",
)  # fmt: skip


def text(chance: random.Random, pieces: tuple[str, ...] = PIECES) -> str:
    return "".join(chance.choices(pieces, k=chance.randrange(4)))


def simple(chance: random.Random) -> Any:
    """A value that has one text in JSON."""
    blob = b64encode(chance.randbytes(chance.randrange(9))).decode()
    date = {"year": chance.randrange(3000), "month": 1, "day": 2}
    bare = text(chance, tuple(piece for piece in PIECES if not set('"\\\n') & set(piece)))
    number = chance.choice([0, -5, 7, 1 << 63, -(1 << 63), chance.randrange(10)])
    return chance.choice(
        [{"SignedInteger": number}, {"String": bare}, {"Date": date}, {"Blob": blob}, {"Decimal": "-1.50"}]
    )


def any_value(chance: random.Random) -> Any:
    document = {"cols": [1, {"rows": [{"cols": [2]}]}], text(chance): text(chance)}
    return chance.choice(
        [
            simple(chance), simple(chance), {"String": text(chance)}, {"Float": 1.5}, {"Set": [text(chance), "b"]},
            "Null", *([{"Json": document}] if chance.random() < 0.05 else []),
        ]
    )  # fmt: skip


def record(chance: random.Random, sequence: int) -> dict[str, Any]:
    """As cdc-producer writes one, of a table whose key is its first column."""

    def image() -> list[Any]:
        return [(simple if chance.random() < often else any_value)(chance) for often in (0.97, 0.9, 0.0)]

    operation = chance.choice(["Add", "Update", "Delete", "Copy"])
    count = range(chance.randrange(1, 5))
    if operation == "Update":
        content: dict[str, Any] = {"rows": [{"before_cols": image(), "after_cols": image()} for _ in count]}
    else:
        content = {"rows": [{"cols": image()} for _ in count]}
    if operation == "Copy":
        ends = [None, {"cols": [simple(chance)]}]
        content = {"after": chance.choice(ends), "upto": chance.choice(ends), "collations": [None], **content}
    return {
        "uri": URI, "sequence": sequence, "bn_file": {"fileName": "b.1", "offset": sequence * 7},
        "transaction": {"id": f"u:{sequence}", "index": 0, "last": True, "ts_us": 5}, "columns": COLUMNS, "key": ["id"],
        "operation": {operation: content},
    }  # fmt: skip


def as_written(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def read(spark: SparkSession, values: list[bytes], *, width: int, upto: int = LATER) -> dict[int, Row]:
    """By its place in ``values`` what is read of each record that is not left out."""
    rows = [{"offset": at, "value": b64encode(value).decode()} for at, value in enumerate(values)]
    given = local_frame(spark, rows, "offset BIGINT, value STRING")
    messages = given.select(
        F.lit(LEADER).alias("side"), F.lit("t/0").alias("partition"), "offset", F.unbase64("value").alias("value")
    )
    told = {"uri": URI, "first": 0, "end": LATER, "pattern": pattern([0], width), "width": width}
    patterns = local_frame(spark, [told], PARTS)
    found = leading_values(messages, patterns, uris=[URI, OTHER], upto=upto)
    parsed = parse(messages).select("offset", F.col("rows").alias("all"), F.col("columns").alias("names"), "valid")
    return {row["offset"]: row for row in found.join(parsed, "offset").collect()}


def as_in_json(value: str) -> Any:
    return value if value == "Null" else json.loads(value)


@pytest.mark.parametrize("width", [1, 2])
def test_leading_values_are_those_that_the_parser_gives(spark: SparkSession, width: int) -> None:
    chance, plain = random.Random(SEED + width), Counter[str]()
    values = [as_written(record(chance, sequence)) for sequence in range(RECORDS)]
    found = read(spark, values, width=width)
    assert len(found) == RECORDS
    for at, row in found.items():
        note = f"CDC_SEED={SEED}: {values[at]!r}"
        assert row["valid"], note
        if not row["plain"]:
            continue
        plain[next(iter(json.loads(values[at])["operation"]))] += 1
        assert (row["sequence"], row["position"], row["key"]) == (at, at * 7, ["id"]), note
        assert row["columns"] == row["names"], note
        for ours, whole in zip(row["rows"], row["all"], strict=True):
            for image, all_values in ((ours.before, whole.before), (ours.after, whole.after)):
                kept = None if all_values is None else [v if v != "Null" else '"Null"' for v in all_values[:width]]
                assert image == kept, note
        chosen = [number for number, whole in enumerate(row["all"]) if whole.after is not None]
        texts = image_texts(values[at], chosen, of=len(row["all"]), sequence=at) if chosen else []
        expected = [[as_in_json(value) for value in row["all"][number].after] for number in chosen]
        assert [json.loads(f"[{each}]") for each in texts] == expected, note
    assert plain.keys() == {"Add", "Update", "Delete", "Copy"}
    assert sum(plain.values()) > RECORDS // 4, plain


def test_what_is_not_as_cdc_producer_writes_it_is_for_the_parser(spark: SparkSession) -> None:
    body = record(random.Random(SEED), 3)
    row = {"cols": [{"SignedInteger": 1}, "Null", "Null"]}
    body["operation"] = {"Add": {"rows": [row]}}
    good = as_written(body)
    others = [
        json.dumps(body).encode(),
        as_written({key: body[key] for key in reversed(body)}),
        good.replace(b'{"SignedInteger":1}', b'{"String":"\\u0061"}'),
        good.replace(b'{"SignedInteger":1}', b'{"Double":1.0}'),
        good.replace(b'"Null"]', b'{"Json":{"cols":[]}}]'),
        good.replace(b'{"cols"', b'{"xcols"'),
        as_written({**body, "operation": {"Repair": {"keys": [], "rows": [row]}}}),
        good + b" ", b"no JSON", b"",
    ]  # fmt: skip
    found = read(spark, [good, *others], width=1)
    assert found[0]["plain"]
    assert [found[at]["plain"] for at in range(1, len(others) + 1)] == [False] * len(others)


def test_records_of_no_part_are_left_out(spark: SparkSession) -> None:
    """Those behind the last sequence, and of a table under a name that it had before; others are for the parser."""
    body = record(random.Random(SEED), 7)
    body["operation"] = {"Add": {"rows": [{"cols": [{"SignedInteger": 1}, "Null", "Null"]}]}}
    values = [as_written(body), as_written({**body, "uri": OTHER}), as_written({**body, "uri": "flv://s/d/unknown"})]
    assert list(read(spark, values, width=1, upto=6)) == [2]
    assert {at: row["plain"] for at, row in read(spark, values, width=1, upto=7).items()} == {0: True, 2: False}


def test_a_record_that_is_damaged() -> None:
    body = record(random.Random(SEED), 3)
    body["operation"] = {"Add": {"rows": [{"cols": [{"String": "x"}]}]}}
    with pytest.raises(ValueError, match="1 rows instead of 2"):
        image_texts(as_written(body), [0], of=2, sequence=3)
    with pytest.raises(ValueError, match="utf-8"):
        image_texts(as_written(body).replace(b'"x"', b'"\xff"'), [0], of=1, sequence=3)
    for value, sequence in ((None, 3), (as_written(body), 33)):
        with pytest.raises(ValueError, match="deleted, or is another record"):
            image_texts(value, [0], of=1, sequence=sequence)


def test_heads_are_what_the_parser_gives(spark: SparkSession) -> None:
    """Of records as cdc-producer writes them, of others, and NULL of what is no record."""
    chance = random.Random(SEED)
    written = [record(chance, at) for at in range(20)]
    written[3]["transaction"]["last"] = False
    written[4]["bn_file"]["fileName"] = 'b"\\1'
    written[5]["transaction"]["id"] = 'u"}:5'
    for at in (2, 6):
        written[at]["transaction"]["id"] = f"{COPYING}{at}"
    values = [as_written(each) for each in written]
    values += [json.dumps(each, indent=1).encode() for each in written[:6]]
    values += [as_written(dict(reversed(written[0].items()))), b"", b"no record", b'{"uri":"flv://s/d/t"}']
    rows = [{"offset": at, "value": b64encode(value).decode()} for at, value in enumerate(values)]
    given = local_frame(spark, rows, "offset BIGINT, value STRING")
    messages = given.select(
        F.lit(LEADER).alias("side"), F.lit("t/0").alias("partition"), "offset", F.unbase64("value").alias("value")
    )
    names = ("sequence", "file", "position", "transaction", "index", "last", "ts_us")
    parsed = {row[0]: row[1:] for row in parse(messages).select("offset", *names).collect()}
    found = {row[0]: row[1:] for row in heads(messages, *names).select("offset", *names).collect()}
    assert found == parsed
    assert found[4][1:4] == ('b"\\1', 28, "u:4")
    assert found[5][3:6] == ('u"}:5', 0, True)
    assert [row[0] for row in found.values()] == [*range(20), *range(6), 0, None, None, None]
    # Each name alone, too.
    for at, name in enumerate(names):
        alone = heads(messages, name).select("offset", name).collect()
        assert {row[0]: row[1] for row in alone} == {offset: row[at] for offset, row in parsed.items()}
    numbered = with_sequences(messages).select("offset", "sequence", "copied").collect()
    assert {row[0]: row[1] for row in numbered} == {offset: row[0] for offset, row in parsed.items()}
    copied = {offset for offset, row in parsed.items() if (row[3] or "").startswith(COPYING)}
    assert {row[0] for row in numbered if row[2]} == copied != set()
