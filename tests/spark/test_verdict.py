"""``cdc.spark.audit``: an audit on the caller's own Spark session, and its verdict as an object with DataFrames."""

import re
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.errors import UserError
from cdc.spark.folders import as_pattern
from cdc.spark.verdict import Verdict, audit
from tests.harness.pair import Pair
from tests.harness.programs import run_well

PAGE = Path(__file__).parents[2] / "docs" / "audit-operations.md"
pytestmark = [pytest.mark.spark, pytest.mark.integration]


def verdict_of_the_page(pair: Pair, spark: SparkSession, folder: Path) -> Verdict:
    """What the code of the page gives, where the profiles are called as there."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    code = code.replace("from cdc.spark import audit", "")  # its module is called so where it was imported before
    for name, profile in (("producer", pair.source), ("follower", pair.capture), ("consumer", pair.target)):
        (folder / f"{name}_profile.toml").symlink_to(profile)
    names: dict[str, Any] = {"spark": spark, "audit": audit}
    with chdir(folder):
        exec(code, names)
    verdict: Verdict = names["verdict"]
    return verdict


def test_the_verdict_on_the_callers_session(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    database = "the_verdict_on_the_callers_session"
    pair.on_leader("CREATE TABLE t (id INT PRIMARY KEY, n INT)", "INSERT INTO t VALUES (1, 1)", database=database)
    pair.replicate()
    run_well("cdc-producer", pair.capture, "--until-current")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    mine = spark.range(3).persist()
    mine.count()
    try:
        faithful = audit(spark, pair.source, str(pair.capture), consumer=pair.target)
        assert (str(faithful), faithful.exit_status, faithful.reasons) == ("no drift", 0, [])
        assert (faithful.drift.count(), faithful.foreign.count()) == (0, 0)
        counted = faithful.tables.collect()
        assert [(each["table"], each["leader_rows"], each["follower_rows"]) for each in counted] == [("t", 1, 1)]
        pair.on_follower("INSERT INTO t VALUES (7, 7)", database=database)
        run_well("cdc-producer", pair.capture, "--until-current")
        (here := tmp_path / "here [1]").mkdir()
        drifted = verdict_of_the_page(pair, spark, here)
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert mine.storageLevel.useMemory and mine._jdf.queryExecution().withCachedData().toString().count("InMemory")
    finally:
        mine.unpersist()
        spark.conf.unset("spark.sql.session.timeZone")
    assert (str(drifted), drifted.exit_status) == ("drift", 1)
    assert [row["identity"] for row in drifted.drift.collect()] == [{"id": '{"SignedInteger":7}'}]
    assert [row["tables"] for row in drifted.foreign.collect()] == [[f"{database}.t"]]
    assert (here / "report" / "report.html").is_file()
    # What a verdict without any has is as the files of one with some.
    for name in ("drift", "foreign"):
        written = spark.read.parquet(as_pattern(f"file://{here / 'report' / f'{name}.parquet'}"))
        assert getattr(faithful, name).dtypes == written.dtypes == getattr(drifted, name).dtypes, name
    folder = faithful.report
    assert folder.is_dir()
    del faithful
    assert not folder.exists()


def test_what_the_command_refuses_is_refused(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the same topic"):
        audit(spark, pair.source, pair.source)
    with pytest.raises(TypeError, match="unexpected option: watch"):
        audit(spark, pair.source, pair.capture, watch=5)


def test_the_package_has_it() -> None:
    package = import_module("cdc.spark")
    assert package.__getattr__("audit") is audit
    assert set(package.__all__) >= {"audit", "table"}
    assert Verdict.__doc__
