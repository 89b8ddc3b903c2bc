"""Names of tables and columns of any kind through a lake in each format: right after each run, or refused by name."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.lake.folder import Held
from cdc.lake.folder import folder as folder_of
from cdc.lake.pipeline import Refused
from tests.harness.long_runs import LONG
from tests.harness.pair import Pair
from tests.harness.programs import run_well
from tests.spark.test_lake import FORMATS, Opened

pytestmark = [pytest.mark.spark, pytest.mark.integration]

DATABASE = "names_of_any_kind"
CREATED = {
    "odd": ("id", "_change_type", "_commit_version", "_metadata", "a b", "c,d;e", "f{g}(h)", "i=j", "k\tl\nm", "n.o",
            "p`q'r\"s\\", "${env:HOME}", "${spark.master}", "ß", "ss", "é", "gone", "image", "named", "c0", "v0", "t"),
    "${env:HOME}": ("id", "v"),
    "defaults": ("id",),
    "cased": ("id", "name"),
    "Cased": ("id", "NAME"),
    "dotless": ("id", "ı", "i"),
    "digits": ("id", "2024", "_2024"),
    "of_iceberg": ("id", "_deleted"),
    "of_merge": ("id", "__row_operation", "__row_from_target", "_row_dropped_", "_source_row_present_"),
}  # fmt: skip
"""Tables of numbers: their columns, of which the first one is the key."""
REFUSED = {"delta": {"dotless"}, "iceberg": {"dotless", "digits", "of_iceberg"}, "parquet": {"dotless"}}


def test_names_of_any_kind(pair: Pair, lake_spark: SparkSession, tmp_path: Path) -> None:
    for name, columns in CREATED.items():
        typed = ", ".join(f"`{each.replace('`', '``')}` INT" for each in columns)
        rows = ", ".join(f"({row}{f', {row}0' * (len(columns) - 1)})" for row in (1, 2, 3))
        create = f"CREATE TABLE `{name}` ({typed}, PRIMARY KEY (`{columns[0]}`))"
        pair.on_leader(create, f"INSERT INTO `{name}` VALUES {rows}", database=DATABASE)
    run_well("cdc-producer", pair.source, "--until-current")
    # Iceberg refuses the most names.
    forms = list(FORMATS) if LONG else ["iceberg"]
    lakes = {form: Opened(lake_spark, pair.source, tmp_path / form, form) for form in forms}
    for form, lake in lakes.items():
        lake.lake.changes = None
        assert right_or_refused(lake, pair) == REFUSED[form]
    pair.on_leader(
        "UPDATE odd SET _change_type = 5, `c,d;e` = 6, `ß` = 1, `é` = 2, gone = 3, c0 = 4 WHERE id = 2",
        "UPDATE odd SET `${env:HOME}` = 5 WHERE id = 1", "UPDATE `${env:HOME}` SET v = 7 WHERE id = 1",
        "ALTER TABLE defaults ADD c VARCHAR(200) DEFAULT '${env:HOME}', ADD m VARCHAR(99) DEFAULT '${spark.master}', "
        "ADD greet VARCHAR(40) DEFAULT 'Dear ${name}'", "INSERT INTO defaults (id) VALUES (4)",
        "UPDATE of_merge SET __row_operation = 5, _row_dropped_ = 6 WHERE id = 2",
        "ALTER TABLE cased RENAME COLUMN name TO Name", "UPDATE Cased SET NAME = 8 WHERE id = 3",
        database=DATABASE,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    for form, lake in lakes.items():
        assert right_or_refused(lake, pair) == REFUSED[form]
        lake.folder.close()


def right_or_refused(lake: Opened, pair: Pair) -> set[str]:
    """The tables that a run refuses, of which nothing is there; all others are the server's, with its names."""
    refused = set[str]()
    try:
        lake.advance()
    except Refused as error:
        refused = {name for _, name in error.names}
    held = {each.name[1]: each for each in lake.folder.load().tables}
    assert held.keys() == CREATED.keys() - refused
    with pair.leader.root(charset="utf8mb4") as session, session.cursor() as cursor:
        for name, each in held.items():
            assert isinstance(each, Held)
            cursor.execute(f"SELECT * FROM `{DATABASE}`.`{name}`")
            found = lake.read(folder_of(DATABASE, name))
            assert found.columns == [column[0] for column in cursor.description], (lake.form, name)
            assert Counter(map(tuple, found.collect())) == Counter(cursor.fetchall()), (lake.form, name)
    for name in refused:
        assert not (lake.path / folder_of(DATABASE, name)).exists(), (lake.form, name)
    return refused
