"""A leader's tables on Spark: what the topic tells of a table at a moment is what the server held then."""

import json
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import TimestampType

from cdc.config.profile import load as load_profile
from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.spark import changes, table, tables
from cdc.spark.data_source import ChangesSource
from cdc.spark.frames.api import feed_of_table
from cdc.spark.frames.history import read_history
from cdc.spark.frames.messages import Source
from cdc.spark.frames.rows import changed_rows, left_rows, typed_rows
from cdc.spark.frames.schema_history import History, existing
from cdc.spark.frames.typed import Options, typed
from cdc.spark.frames.versions import plan, plan_of_feed
from cdc.spark.input.small_data import set_tiny
from tests.checks.exact import Shown
from tests.checks.folded import Rows, shown
from tests.checks.typed import compared as is_compared
from tests.checks.typed import server_row, typed_row
from tests.generators.random_tables import LAX
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, records, run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_fixtures import MySqlFactory
from tests.integration.pair.test_random_history import Moment, run_deeds
from tests.integration.pair.test_types import DURABLE_ENOUGH, execute, load

pytestmark = [pytest.mark.spark, pytest.mark.integration]

DEEDS = int(os.environ.get("CDC_TYPED_DEEDS", "40"))
TABLES = int(os.environ.get("CDC_TYPED_TABLES", "8"))  # of those in all_types.sql, some 110
A_ROUND = 40  # deeds in one database
ODD_SETTINGS = {
    "spark.sql.variable.substitute": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.parser.quotedRegexColumnNames": "true",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.legacy.sizeOfNull": "true",
    "spark.sql.session.timeZone": "UTC",
}
LONGEST_NAME = "longest key 65535"
ALWAYS = ("t_json", "t_json_short")


def test_a_table_is_what_the_server_has(pair: Pair, spark: SparkSession) -> None:
    database = "a_table_is_what_the_server_has"
    pair.on_leader(
        "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20), price DECIMAL(10, 2), day DATE)",
        "INSERT INTO orders VALUES (1, 'a', 1.5, '2026-01-01'), (2, 'é\"\\\\', NULL, '2026-01-02'), (3, 'c', -2, NULL)",
        "UPDATE orders SET id = 4, name = 'd' WHERE id = 3", "DELETE FROM orders WHERE id = 1",
        "INSERT INTO orders VALUES (1, 'again', 7, NULL)", "UPDATE orders SET price = price + 1",
        "CREATE TABLE bare (n INT, t TEXT)",
        "INSERT INTO bare VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, NULL)", "DELETE FROM bare WHERE n = 1 LIMIT 1",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    orders = table(spark, pair.source, f"{database}.orders")
    assert orders.dtypes == [("id", "int"), ("name", "string"), ("price", "decimal(10,2)"), ("day", "date")]
    assert sorted(map(tuple, orders.selectExpr("id", "name", "string(price)", "string(day)").collect())) == [
        (1, "again", "8.00", None), (2, 'é"\\', None, "2026-01-02"), (4, "d", "-1.00", None),
    ]  # fmt: skip
    bare = table(spark, str(pair.source), f"{database}.bare")
    assert sorted(map(tuple, bare.collect())) == [(1, "x"), (1, "x"), (2, None)]
    logged = changes(spark, pair.source, f"{database}.orders")
    all_changes = changes(spark, pair.source, since=1)
    feed = changes(spark, pair.source, f"{database}.orders", shape="cdf")
    assert feed.columns[4:] == ["_change_type", "_commit_version", "_commit_timestamp"]
    assert sorted((row.id, row.name, row._change_type) for row in feed.where("id IN (1, 4)").collect()) == [
        (1, "a", "delete"), (1, "a", "insert"), (1, "again", "insert"), (1, "again", "update_postimage"),
        (1, "again", "update_preimage"), (4, "d", "update_postimage"), (4, "d", "update_postimage"),
        (4, "d", "update_preimage"),
    ]  # fmt: skip
    for wrong in ({"name": None}, {"stream": True}, {"shape": "delta"}):
        with pytest.raises(UserError, match="no such changes: shape"):
            changes(spark, pair.source, **{"name": f"{database}.orders", "shape": "cdf"} | wrong)  # type: ignore[arg-type]
    listed = tables(spark, pair.source)
    assert {each.table: each.changes for each in listed.collect() if each.database == database} == {
        "orders": 8, "bare": 5,
    }  # fmt: skip
    assert [parses(each) for each in (orders, bare, logged, all_changes, listed, feed)] == [1] * 6
    assert [checks_of_rows(each) for each in (orders, bare, logged)] == [0, 0, 0]
    assert names_of_rows(orders) == 0
    # In this process; by SQL it is in the page, tables.md. Each process that Spark starts takes a second of CPU time.
    source = {"profile": str(pair.source), "since": "1"}
    read = ChangesSource(source).reader(None).read(InputPartition(0))
    assert sorted(map(repr, map(in_order, read))) == sorted(
        repr(in_order((*row[:8], tuple(row.position), row.commit_time.astimezone(UTC), row.ends_transaction)))
        for row in all_changes.collect()
    )
    stream = ChangesSource(source).streamReader(None)
    end, begin = stream.latestOffset(), stream.initialOffset()
    assert (stream.latestOffset(), stream.partitions(end, end)) == (end, [])
    (batch,) = stream.partitions(begin, json.loads(json.dumps(end)))
    assert list(stream.read(batch)) == list(ChangesSource(source).reader(None).read(InputPartition(0)))
    source = {"profile": str(pair.source), "path": f"{database}.orders", "upto": "5"}
    read = ChangesSource(source).reader(None).read(InputPartition(0))
    expected = changes(spark, pair.source, f"{database}.orders", upto=5)
    assert [(row[2], row[5], row[6]) for row in read] == sorted(
        map(tuple, expected.select("op", "sequence", "row").collect()), key=lambda row: row[1:]
    )


@pytest.mark.parametrize(("options", "told"), [
    ({}, "the option profile is missing"), ({"profile": "p", "profil": "x"}, "no such option: profil"),
    ({"profile": "p", "since": "now"}, "not a sequence: 'now'"), ({"profile": "p", "path": "orders"}, "not a table"),
    ({"profile": "p", "path": "my.db.orders"}, "not a table: 'my.db.orders'; hint: .* `my.db`.orders"),
])  # fmt: skip
def test_options_of_the_data_source(options: dict[str, str], told: str) -> None:
    with pytest.raises(UserError, match=told):
        ChangesSource(options).reader(None)
    with pytest.raises(UserError, match=told):
        ChangesSource(options).streamReader(None)


def in_order(row: Sequence[Any]) -> list[Any]:
    """A row whose maps are sorted by their keys."""
    return [sorted(each.items()) if isinstance(each, dict) else each for each in row]


def parses(frame: DataFrame) -> int:
    """How often a query parses each record."""
    return plan_of(frame).count("from_json(StructField(uri,")


def names_of_rows(frame: DataFrame) -> int:
    """How often a query makes a text that names a row for errors, for each row."""
    return plan_of(frame).count(" AS named")


def checks_of_rows(frame: DataFrame) -> int:
    """How often a query compares a record's columns for each of its rows, of which a chunk has thousands."""
    of_rows, generate, of_records = plan_of(frame).partition("Generate posexplode")
    assert generate and "its columns differ" in of_records
    return of_rows.count("its columns differ")


def plan_of(frame: DataFrame) -> str:
    """The plan with all of its expressions."""
    name, conf = "spark.sql.debug.maxToStringFields", frame.sparkSession.conf
    before = conf.get(name)
    conf.set(name, "1000")
    try:
        return str(frame._jdf.queryExecution().executedPlan())
    finally:
        conf.set(name, before)


def test_a_moment_in_any_session_and_of_any_kind(pair: Pair, spark: SparkSession) -> None:
    database, zone = "a_moment_in_any_session_and_of_any_kind", "spark.sql.session.timeZone"
    create = "CREATE TABLE `{0}` (`{}` INT PRIMARY KEY, at TIMESTAMP(6))"
    # Where summer time begins in Berlin, its clocks have no 02:30.
    pair.on_leader(
        "SET time_zone = '+00:00'", create, "INSERT INTO `{0}` VALUES (1, '2026-03-29 02:30:00.000005')",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    before = spark.conf.get(zone)
    try:
        for each, moment in (("Europe/Berlin", None), ("+14:00", datetime.now() + timedelta(days=2)), ("PST", 1 << 64)):
            spark.conf.set(zone, each)
            frame = table(spark, pair.source, f"{database}.{{0}}", at=moment, zero_dates="string")
            assert (frame.columns, list(map(tuple, frame.collect()))) == (
                ["{}", "at"], [(1, "2026-03-29 02:30:00.000005")],
            )  # fmt: skip
    finally:
        spark.conf.set(zone, before)
    for wrong in (date(2026, 11, 1), 1.5, "yesterday"):
        with pytest.raises(UserError, match="no moment of the stream"):
            table(spark, pair.source, f"{database}.{{0}}", at=wrong)  # type: ignore[arg-type]


def test_settings_of_the_session_change_nothing(pair: Pair, spark: SparkSession) -> None:
    """Names and values are what the leader has, whatever the user's session makes of the SQL of its own."""
    database, moment = "settings_of_the_session_change_nothing", "2026-11-01 12:00:00"
    pair.on_leader(
        "CREATE TABLE t (id INT PRIMARY KEY, at TIMESTAMP, e ENUM('\\\\', '${spark.master}'))",
        "SET time_zone = '+00:00'", f"INSERT INTO t VALUES (1, '{moment}', 2)",
        "ALTER TABLE t ADD c VARCHAR(200) DEFAULT '${env:HOME}', ADD `${x}` VARCHAR(40) DEFAULT 'Dear \"${name}\"'",
        "CREATE TABLE `${env:HOME}.x` (id INT PRIMARY KEY, `(id)?+.+` INT, `first` INT)",
        "INSERT INTO `${env:HOME}.x` VALUES (1, 2, 3)",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    session = spark.newSession()
    for name, value in ODD_SETTINGS.items():
        session.conf.set(name, value)
    made = table(session, pair.source, f"{database}.t")
    assert made.schema["at"].dataType == TimestampType()
    made.createOrReplaceTempView("mine")  # in the session that was given
    [row] = session.table("mine").withColumn("at", F.col("at").cast("string")).collect()
    assert tuple(row) == (1, moment, "${spark.master}", "${env:HOME}", 'Dear "${name}"')
    assert made.columns[-1] == "${x}"
    name = f"{database}.`${{env:HOME}}.x`"
    assert list(map(tuple, table(session, pair.source, name).collect())) == [(1, 2, 3)]
    [change] = changes(session, pair.source, name).collect()
    assert (change.op, change.after.asDict()) == ("insert", {"id": 1, "(id)?+.+": 2, "first": 3})
    there = {each.table: each.changes for each in tables(session, pair.source).collect() if each.database == database}
    assert there == {"t": 1, "${env:HOME}.x": 1}
    assert session.conf.get("spark.sql.variable.substitute") == "true"


def test_moments_in_the_forms_of_records(spark: SparkSession) -> None:
    """Those that a regular expression reads are what the parser of JSON makes of the same numbers in another order."""
    days = ("2024-02-29", "0001-01-01", "9999-12-31", "1000-10-10")
    clocks = ("00:00:00.000000", "23:59:59.999999", "07:08:09.000010", "07:08:09.100000", "12:00:01.012345")
    datetimes = [datetime.fromisoformat(f"{day} {clock}") for day in days for clock in clocks]
    numbers = [{"year": each.year, "month": each.month, "day": each.day} for each in datetimes]
    clock = [
        {"hour": each.hour, "minute": each.minute, "second": each.second, "subsecond": each.microsecond}
        for each in datetimes
    ]
    seconds = [
        {"unix_time": unix_time, "subsecond": fraction}
        for unix_time in (1, 2147483647, 1774751400) for fraction in (0, 5, 99999, 100000, 999999)
    ]  # fmt: skip
    of_kinds = {
        "date": [{"Date": each} for each in numbers],
        "datetime(6)": [{"DateTime": day | rest} for day, rest in zip(numbers, clock, strict=True)],
        "timestamp(6)": [{"Timestamp": each} for each in seconds],
    }
    for kind, values in of_kinds.items():
        made = typed("value", kind, where="'a row'", options=Options())
        results = []
        for turned in (False, True):
            records = [(json.dumps(ordered(each, turned=turned), separators=(",", ":")),) for each in values]
            frame = spark.createDataFrame(records, "value STRING").select(F.expr(made).cast("string"))
            results.append([row[0] for row in frame.collect()])
        assert results[0] == results[1]
        if kind == "datetime(6)":
            assert [datetime.fromisoformat(each) for each in results[0]] == datetimes


def ordered(value: dict[str, dict[str, int]], *, turned: bool) -> dict[str, dict[str, int]]:
    return {tag: dict(reversed(fields.items())) if turned else fields for tag, fields in value.items()}


def test_documents_as_variants(spark: SparkSession) -> None:
    document = '{"a":[1,{"b":null}],"n":18446744073709551615,"t":"\\u00e9\\n"}'
    records = [f'{{"Json":{document}}}', '{"Json":null}', "Null", '{"JsonTyped":{"a":1}}']
    made = typed("value", "json", where="'a row'", options=Options(json="variant", typed_json="record"))
    frame = spark.createDataFrame([(each,) for each in records], "value STRING").select(F.expr(made).alias("d"))
    assert frame.schema["d"].dataType.simpleString() == "variant"
    rows = frame.selectExpr("to_json(d)", "variant_get(d, '$.n', 'decimal(20, 0)')", "is_variant_null(d)").collect()
    assert [json.loads(row[0]) if row[0] else None for row in rows] == [
        json.loads(document), None, None, {"JsonTyped": {"a": 1}},
    ]  # fmt: skip
    assert (int(rows[0][1]), [row[2] for row in rows]) == ((1 << 64) - 1, [False, True, False, False])
    refused = typed("value", "json", where="'t, column d'", options=Options(json="variant"))
    with pytest.raises(PySparkException, match="t, column d: it has members of SQL types"):
        spark.createDataFrame([(records[-1],)], "value STRING").select(F.expr(refused)).collect()


def test_a_text_of_any_length(spark: SparkSession) -> None:
    """By default Spark's parser of JSON has no texts of more than 20 million characters."""
    record = "concat('{\"String\":\"', char(92), 'n', repeat('x', 20000001), '\"}')"
    made = typed("record", "longtext character set utf8mb4", where="'a row'", options=Options())
    length = spark.range(1).select(F.expr(record).alias("record")).select(F.expr(f"length({made})")).first()
    assert length is not None and length[0] == 20_000_002


def test_all_types(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, spark: SparkSession) -> None:
    """Each table is equal to the server's, or refused by name. Some of them, or all."""
    leader = mysql_server(*DURABLE_ENOUGH, server_id=3)
    load(leader)
    short = f"INSERT INTO t_json_short SELECT * FROM t_json WHERE note != '{LONGEST_NAME}'"
    execute(leader, "USE cdc_types", "CREATE TABLE t_json_short LIKE t_json", short)
    set_tiny(spark, records=0)
    profile = write_profile(tmp_path, leader, kafka, name="typed")
    run_well("cdc-producer", profile, "--until-current")
    source = Source.of(spark, load_profile(profile))
    history = read_history(source)
    compared, refused, chance = 0, dict[str, str](), random.Random(SEED)
    for database in ("cdc_types", "Cdc_Mixed", "cdc schema-with.odd$chars", "схема"):
        with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
            cursor.execute(LAX)
            held = shown(cursor, database)
        chosen = held.keys() if len(held) < TABLES else {*chance.sample(sorted(held), min(len(held), TABLES)), *ALWAYS}
        for name, rows in held.items():
            if name not in chosen:
                continue
            outcome = told(source, history, (database, name), source.newest)
            if isinstance(outcome, str):
                refused[name] = outcome
            else:
                here = Counter[tuple[Shown, ...]]()
                for row, times in rows.items():
                    here[server_row(row, outcome.types)] += times
                assert outcome.rows == here, (SEED, database, name, outcome.rows - here, here - outcome.rows)
                compared += 1
    # Spark's parser takes names in a document of up to 50 000 characters, which has no option.
    assert refused.keys() == {"t_json"}, refused
    assert "not a record of rows" in refused["t_json"]
    assert compared >= min(TABLES, 100)


@dataclass(frozen=True)
class Held:
    """What a table holds: its columns' types, and its rows in the form of ``checks.exact``."""

    types: list[str]
    rows: Rows


def told(source: Source, history: History, name: tuple[str, str], sequence: int) -> Held | str:
    """What ``table`` gives, or why it refuses. As in ``table``, but the history is read once."""
    options = Options(zero_dates="string", typed_json="record")
    try:
        wanted = plan(history, name, sequence, cut=source.cut)
    except UserError as error:
        return str(error)
    changed = changed_rows(source.of_tables({each.name for each in wanted.stretches}), wanted, since=0, upto=sequence)
    types = [kind for _, kind in wanted.columns]
    frame = typed_rows(left_rows(changed, wanted), wanted, options)
    frame = frame.toDF(*(f"c{at}" for at in range(len(types))))
    frame = frame.select(*(f"c{at}" for at, kept in enumerate(is_compared(types)) if kept))
    kept_types = [kind for kind in types if is_compared([kind])[0]]
    try:
        rows = frame.collect()
    except PySparkException as error:
        return str(error)
    return Held(types, Counter(typed_row(row, kept_types) for row in rows))


def test_random_histories(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """The law: ``table(at=s)`` is what the server held after sequence s, or it refuses and names an ALTER."""
    leader = mysql_server(server_id=1)
    set_tiny(spark, records=0)
    found = Counter[str]()
    for number, first in enumerate(range(0, DEEDS, A_ROUND)):
        name, chance = f"typed_history_{number}", random.Random(f"{SEED} typed {number}")
        layout = {"layout": "per_table", "prefix": f"{name}."} if chance.random() < 0.5 else {}
        own = {"producer": {"start": "now"}, "filters": {"include_dbs": [name]}}
        profile = write_profile(tmp_path, leader, kafka, name=name, kafka=layout, **own)
        begin_now(profile, leader)
        with (tmp_path / f"{name}.sql").open("w") as log:
            done = run_deeds(leader, name, chance, deeds=min(A_ROUND, DEEDS - first), log=log)
        run_well("cdc-producer", profile, "--until-current")
        found += compared_moments(Source.of(spark, load_profile(profile)), profile, done.moments, chance)
    with capsys.disabled():
        print(f"\n{dict(found)} (CDC_SEED={SEED})")
    assert found["equal"] * 4 > found["refused"]


def compared_moments(source: Source, profile: Path, moments: list[Moment], chance: random.Random) -> Counter[str]:
    """How many tables at moments were equal, and how many were refused."""
    found, history, logged = Counter[str](), read_history(source), records(profile)
    which = f"CDC_SEED={SEED}, {profile.stem}"
    pairs = []
    for moment in moments:
        sequence = max((each.sequence for each in logged if each.position < moment.position), default=-1)
        there = {name for database, name in existing(history, sequence) if database == profile.stem}
        assert there == moment.tables.keys(), f"{which}, sequence {sequence}"
        pairs += [(moment, sequence, name) for name in moment.tables]
    for moment, sequence, each in chance.sample(pairs, min(len(pairs), A_ROUND // 2)):
        outcome = told(source, history, (profile.stem, each), sequence)
        if isinstance(outcome, str):
            assert "ALTER at sequence" in outcome or "no record contains" in outcome, f"{which}, {each}: {outcome}"
            found["refused"] += 1
            found[re.sub(r"\d+|`.*?`", "…", outcome.partition(": ")[2])[:90]] += 1
            continue
        here = shown_rows(moment.tables[each], outcome.types)
        assert outcome.rows == here, f"{which}, {each} at {sequence}: {outcome.rows - here}, {here - outcome.rows}"
        found["equal"] += 1
        found["rows"] += outcome.rows.total()
        earlier = [(upto, other) for other, upto, of in pairs if of == each and upto < sequence]
        since, other = chance.choice([(None, None), *earlier])
        if chance.random() < 0.3:
            rows = other.tables[each] if other else Counter[tuple[Shown, ...]]()
            found[fed(source, history, (profile.stem, each), (since, sequence), rows, outcome)] += 1
    return found


def shown_rows(rows: Rows, types: list[str]) -> Rows:
    """A server's rows in the form of ``Held``."""
    found = Counter[tuple[Shown, ...]]()
    for row, times in rows.items():
        found[server_row(row, types)] += times
    return found


def fed(
    source: Source, history: History, name: tuple[str, str], within: tuple[int | None, int], rows: Rows, outcome: Held
) -> str:
    """The law of feeds: applied to the ``rows`` that the server held at one moment they make those of a later one."""
    since, upto = within
    try:
        wanted = plan_of_feed(history, name, upto, since=since, cut=source.cut)
    except UserError as error:
        assert "rows of the table changed without a record" in str(error), str(error)
        return "feed refused"
    messages = source.of_tables({each.name for each in wanted.stretches})
    options = Options(zero_dates="string", typed_json="record")
    frame = feed_of_table(messages, wanted, options, since=0 if since is None else since + 1, upto=upto)
    kept = [at for at, is_kept in enumerate(is_compared(outcome.types)) if is_kept]
    types = [outcome.types[at] for at in kept]
    frame = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
    try:
        lines = frame.select(f"c{len(outcome.types)}", *(f"c{at}" for at in kept)).collect()
    except PySparkException as error:
        assert "ALTER at sequence" in str(error) or "no record contains" in str(error), str(error)
        return "feed refused"
    left = shown_rows(rows, outcome.types)
    for kind, *values in lines:
        left[typed_row(values, types)] += 1 if kind in ("insert", "update_postimage") else -1
    assert {row: times for row, times in left.items() if times} == outcome.rows, (SEED, name, within)
    return "feed" if since is None else "feed since a moment"
