import os
from importlib.metadata import version
from pathlib import Path

import pytest

from cdc.errors import UserError
from cdc.service.spark_packages import kafka_connector
from cdc.spark.job.launch import known_jars, package_names, remember, resolving

ARTIFACT = kafka_connector(version("pyspark"))


def test_jars_that_are_named_are_on_the_class_path_where_nothing_else_sets_it(tmp_path: Path) -> None:
    jars = [tmp_path / "one.jar", tmp_path / "two.jar"]
    settings = {"CDC_SPARK_JARS": ",".join(map(str, jars))}
    assert known_jars(settings, tmp_path / "kept.json", ARTIFACT) == []
    for jar in jars:
        jar.touch()
    assert known_jars(settings, tmp_path / "kept.json", ARTIFACT) == jars
    assert resolving(settings, jars, ARTIFACT) == ["--driver-class-path", os.pathsep.join(map(str, jars))]
    assert resolving(settings, [], ARTIFACT) == ["--jars", settings["CDC_SPARK_JARS"]]
    assert resolving({}, [], ARTIFACT) == ["--conf", f"spark.jars.packages={ARTIFACT}"]


def test_what_spark_resolved_is_remembered_without_what_it_has_itself(tmp_path: Path) -> None:
    home, kept = tmp_path / "spark", tmp_path / "cache" / "kept.json"
    (home / "jars").mkdir(parents=True)
    for name in ("lz4-java-1.8.1.jar", "spark-sql_2.13-4.0.0.jar", "hadoop-client-runtime-3.4.1.jar"):
        (home / "jars" / name).touch()
    ivy = tmp_path / "with a space"
    ivy.mkdir()
    names = [
        "org.lz4_lz4-java-1.8.0.jar", "org.apache.spark_spark-sql-kafka-0-10_2.13-4.0.0.jar",
        "org.apache.hadoop_hadoop-client-runtime-3.4.1.jar", "org.apache.kafka_kafka-clients-3.9.0.jar",
    ]  # fmt: skip
    for name in names:
        (ivy / name).touch()
    settings = {"spark.jars.packages": ARTIFACT, "spark.jars": ",".join((ivy / name).as_uri() for name in names)}
    remember(settings | {"spark.jars.packages": "another:one:1"}, kept, ARTIFACT, home=home)
    assert not kept.exists()
    remember(settings, kept, ARTIFACT, home=home)
    assert known_jars({}, kept, ARTIFACT) == [ivy / names[1], ivy / names[3]]
    both = f"{ARTIFACT},another:one:1"
    assert known_jars({}, kept, both) == []
    remember({"spark.jars.packages": both, "spark.jars": (ivy / names[3]).as_uri()}, kept, both, home=home)
    assert known_jars({}, kept, both) == [ivy / names[3]]
    assert known_jars({}, kept, ARTIFACT) == [ivy / names[1], ivy / names[3]]
    (ivy / names[3]).unlink()
    assert known_jars({}, kept, ARTIFACT) == []
    for text in ("{", "[]"):
        kept.write_text(text)
        assert known_jars({}, kept, ARTIFACT) == []


def test_the_version_of_spark_decides_which_packages_it_needs(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "spark-core_2.13-4.1.9-emr-1.jar").touch()
    connector, delta = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1", "io.delta:delta-spark_4.1_2.13:4.4.0"
    assert package_names({}, tmp_path) == package_names({}, tmp_path, lake="parquet") == connector
    assert package_names({}, tmp_path, lake="delta") == f"{connector},{delta}"
    (jars / "spark-sql-kafka-0-10_2.13-4.1.9-emr-1.jar").touch()
    assert package_names({}, tmp_path) == ""
    assert package_names({}, tmp_path, lake="delta") == delta
    assert known_jars({}, tmp_path / "kept.json", "") == []
    assert resolving({}, [], "") == []


def test_another_spark_is_refused_unless_its_jars_are_named(tmp_path: Path) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "spark-core_2.12-3.5.9.jar").touch()
    with pytest.raises(UserError, match=r"Spark 3\.5\.9 is not supported"):
        package_names({}, tmp_path)
    assert package_names({"CDC_SPARK_JARS": "/a.jar"}, tmp_path, lake="iceberg") == ""
