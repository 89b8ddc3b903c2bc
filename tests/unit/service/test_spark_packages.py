"""Which packages each version of Spark needs, and what is said where there are none."""

import re
import tomllib
from pathlib import Path

import pytest

from cdc.errors import UserError
from cdc.service.spark_packages import CONNECTOR, kafka_connector, lake_package, lake_packages

ROOT = Path(__file__).parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


@pytest.mark.parametrize("minor", ["4.0", "4.1", "4.2"])
@pytest.mark.parametrize("rest", [".0", ".17", ".1-amzn-0", ".0.dev1"])
def test_each_patch_of_a_minor_version_has_the_same_packages(minor: str, rest: str) -> None:
    assert re.fullmatch(rf"{re.escape(CONNECTOR)}:{re.escape(minor)}\.\d", kafka_connector(minor))
    assert kafka_connector(minor + rest) == kafka_connector(minor)
    assert lake_packages(minor + rest) == lake_packages(minor)


@pytest.mark.parametrize("version", ["3.5.9", "4.3.0", "4.10.0", "40.1", "unknown"])
def test_another_version_is_refused_with_the_way_out(version: str) -> None:
    with pytest.raises(UserError) as raised:
        kafka_connector(version)
    assert f"Spark {version} is not supported" in str(raised.value)
    assert "4.0, 4.1 or 4.2" in str(raised.value) and "CDC_SPARK_JARS" in str(raised.value)


def test_a_format_without_a_package_is_refused_with_what_there_is() -> None:
    assert lake_package("delta", "4.2.1") == "io.delta:delta-spark_4.2_2.13:4.4.0"
    with pytest.raises(UserError) as raised:
        lake_package("iceberg", "4.2.1")
    assert "there is no Iceberg for Spark 4.2.1" in str(raised.value)
    assert "'pyspark~=4.1.0'" in str(raised.value) and "delta or parquet" in str(raised.value)


def test_pyproject_and_documents_agree_with_the_table() -> None:
    """The extra ends above the newest version, which the pages name, and `make test` runs one with all packages."""
    assert EXTRAS["spark"] == ["pyspark>=4.0,<4.3"]
    [tested] = [each.partition("==")[2] for each in EXTRAS["dev"] if each.startswith("pyspark==")]
    assert set(lake_packages(tested)) == {"delta", "iceberg"}
    named = {f"spark-sql-kafka-0-10_2.13:{kafka_connector('4.2').rpartition(':')[2]}"}
    for page in ("deployment", "audit-operations", "lake"):
        text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
        assert set(re.findall(r"spark-sql-kafka-0-10_2\.13:[\d.]+", text)) == named, page
    assert f"Spark {tested}" in (ROOT / "docs/deployment.md").read_text(encoding="utf-8")
