"""docs/tables.md and the notebook in examples/: their code runs as written, and gives what they say."""

import json
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.spark import changes, schema, table, tables
from cdc.spark.frames.history import sequence_at
from cdc.spark.frames.messages import Source
from cdc.spark.input.small_data import set_tiny
from tests.harness.programs import begin_now, run_well, write_profile

pytestmark = [pytest.mark.spark, pytest.mark.integration]

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
NOTEBOOK = Path(__file__).parents[2] / "examples" / "table_history.ipynb"
CREATED = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.orders (id INT PRIMARY KEY, state ENUM('new', 'paid'), price DECIMAL(10, 2), day DATE)",
    "INSERT INTO shop.orders VALUES (1, 'new', 1.5, '2026-01-01'), (2, 'new', NULL, NULL)",
)
CHANGED = (
    "UPDATE shop.orders SET state = 'paid' WHERE id = 1", "DELETE FROM shop.orders WHERE id = 2",
    "ALTER TABLE shop.orders ADD note VARCHAR(20) DEFAULT 'none' AFTER id",
    "INSERT INTO shop.orders VALUES (3, 'x', 'new', 7, NULL)",
    "CREATE TABLE shop.days (d DATE)", "SET sql_mode = ''", "INSERT INTO shop.days VALUES ('0000-00-00')",
    "CREATE TABLE shop.notes (n BIGINT UNSIGNED PRIMARY KEY, t TEXT)",
    "INSERT INTO shop.notes VALUES (1, 'one'), (18446744073709551615, 'two')",
    "ALTER TABLE shop.notes ADD made VARCHAR(36) DEFAULT (CONCAT('n', 1))",
    "UPDATE shop.notes SET t = 'now' WHERE n = 1",
)  # fmt: skip


@dataclass(frozen=True)
class Shop:
    """A stream of a database shop: its profile, and a moment between two of its changes."""

    profile: Path
    earlier: datetime


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, servers: tuple[MySql, MySql], kafka: Kafka) -> Shop:
    folder = tmp_path_factory.mktemp("page")
    own = {"producer": {"start": "now"}, "filters": {"include_dbs": ["shop"]}}
    profile = write_profile(folder, servers[0], kafka, name="producer_profile", topic="shop", **own)
    begin_now(profile, servers[0])
    with servers[0].root() as connection, connection.cursor() as cursor:
        for statement in CREATED:
            cursor.execute(statement)
        time.sleep(0.01)
        moment = datetime.now(UTC)
        time.sleep(0.01)
        for statement in CHANGED:
            cursor.execute(statement)
        run_well("cdc-producer", profile, "--until-current")
        cursor.execute("DROP DATABASE shop")
    return Shop(profile, moment)


@pytest.fixture(autouse=True)
def tiny(spark: SparkSession) -> None:
    set_tiny(spark, records=0)


def test_the_page(
    shop: Shop, spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of its code, in order, but for the moment that it asks for."""
    monkeypatch.chdir(shop.profile.parent)
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(code) >= 4
    names: dict[str, Any] = {"spark": spark}
    shown = []
    for each in code:
        exec(each.replace("2026-11-01 12:00:00", str(shop.earlier)), names)
        shown.append(capsys.readouterr().out)
    assert re.search(r"\| *shop\| *orders\|", shown[0]) and "price: decimal(10,2)" in shown[0]
    assert re.search(r"\|update\| +new\| +paid\|", shown[1]) and re.search(r"\| *shop\| *days\|insert\| +1\|", shown[1])
    assert re.search(r"\|insert\| +3\|", shown[2]) and re.search(r"\| +delete\| +1\|", shown[3])
    assert re.search(r"\|insert\| +3\|", shown[4]), "the data source"


def test_the_notebook(
    shop: Shop, spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cells, in order."""
    monkeypatch.chdir(shop.profile.parent)
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    shown = []
    for each in code:
        exec(each, names)
        shown.append(capsys.readouterr().out)
    try:
        _, _, there, life, _, since = shown
        assert re.search(r"\| *shop\| *orders\| +5\|", there)
        assert [*re.findall(r"\|(insert|update|delete) *\|", life)] == ["insert", "update"]
        assert sum(bar.get_height() for bar in names["axes"].patches) == 5
        # As it was after the first statement's two rows: one was changed since, one removed, and a third one came.
        assert re.findall(r"\| *(added|as before|changed|removed)\| +(\d+)\|", since) == [
            ("added", "1"), ("changed", "1"), ("removed", "1"),
        ]  # fmt: skip
    finally:
        names["history"].unpersist()


def test_moments_and_changes(shop: Shop, spark: SparkSession) -> None:
    orders = changes(spark, shop.profile, "shop.orders")
    lines = orders.orderBy("sequence", "row").collect()
    assert [(each["op"], each["row"]) for each in lines] == [
        ("insert", 0), ("insert", 1), ("update", 0), ("delete", 0), ("insert", 0),
    ]  # fmt: skip
    assert lines[0]["after"].asDict() | {"price": None, "day": None} == {
        "id": 1, "note": "none", "state": "new", "price": None, "day": None,
    }  # fmt: skip
    assert lines[2]["before"]["state"] == "new" and lines[2]["after"]["state"] == "paid" and lines[3]["after"] is None
    source = Source.of(spark, load(shop.profile))
    until = lines[1]["sequence"]
    for at in (shop.earlier, str(shop.earlier), until, lines[1]["gtid"]):
        assert sequence_at(source, at) == until, at
    assert sequence_at(source, 0) == 0 and sequence_at(source, "2000-01-01") == -1
    assert sorted(row["id"] for row in table(spark, shop.profile, "shop.orders", at=until).collect()) == [1, 2]
    after = changes(spark, shop.profile, "shop.orders", since=until).collect()
    assert {each["sequence"] for each in after} == {each["sequence"] for each in lines[2:]}
    every = changes(spark, shop.profile, upto=shop.earlier).collect()
    assert [(each["table"], each["after"]["id"]) for each in every] == [
        ("orders", '{"SignedInteger":1}'), ("orders", '{"SignedInteger":2}'),
    ]  # fmt: skip


def test_tables_and_columns(shop: Shop, spark: SparkSession) -> None:
    there = {row["table"]: row for row in tables(spark, shop.profile).collect()}
    assert {name: row["changes"] for name, row in there.items()} == {"orders": 5, "notes": 3, "days": 1}
    assert [row["table"] for row in tables(spark, shop.profile, at=shop.earlier).collect()] == ["orders"]
    columns = schema(spark, shop.profile, "shop.notes").orderBy("position").collect()
    assert [tuple(row) for row in columns] == [
        (1, "n", "bigint unsigned", "DECIMAL(20,0)", 1),
        (2, "t", "text character set utf8mb4", "STRING", None),
        (3, "made", "varchar(36) character set utf8mb4", "STRING", None),
    ]
    with pytest.raises(UserError, match="no such table"):
        table(spark, shop.profile, "shop.notes", at=shop.earlier)
    with pytest.raises(UserError, match="no end"):
        changes(spark, shop.profile, stream=True, upto=1)


def test_what_is_not_certain_is_refused_by_name(shop: Shop, spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match=r"table shop.notes, column made, .*ALTER at sequence \d+"):
        table(spark, shop.profile, "shop.notes").collect()
    notes = table(spark, shop.profile, "shop.notes", on_alter="null").collect()
    assert {int(row["n"]): row["made"] for row in notes} == {1: "n1", (1 << 64) - 1: None}
    with pytest.raises(PySparkException, match=r"table shop.days, column d, .*no date in Spark"):
        table(spark, shop.profile, "shop.days").collect()
    for choice, shown in (("null", None), ("string", "0000-00-00")):
        assert [row["d"] for row in table(spark, shop.profile, "shop.days", zero_dates=choice).collect()] == [shown]
