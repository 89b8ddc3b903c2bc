import os
from importlib.metadata import version
from pathlib import Path

from cdc.spark.job.connector import connector, known_jars, remember

ARTIFACT = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version('pyspark')}"

RESOLVED = ["--conf", f"spark.jars.packages={ARTIFACT}"]


def test_jars_that_are_named_are_on_the_class_path_where_nothing_else_sets_it(tmp_path: Path) -> None:
    jars = [tmp_path / "one.jar", tmp_path / "two.jar"]
    settings = {"CDC_SPARK_JARS": ",".join(map(str, jars))}
    kept = tmp_path / "kept.json"
    assert connector(settings, kept, on_class_path=True) == ["--jars", settings["CDC_SPARK_JARS"]]
    for jar in jars:
        jar.touch()
    assert connector(settings, kept, on_class_path=True) == ["--driver-class-path", os.pathsep.join(map(str, jars))]
    assert connector(settings, kept, on_class_path=False) == ["--jars", settings["CDC_SPARK_JARS"]]


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
    assert connector({}, kept, on_class_path=True) == RESOLVED
    remember(settings | {"spark.jars.packages": f"{ARTIFACT},another:one:1"}, kept, home=home)
    assert not kept.exists()
    remember(settings, kept, home=home)
    assert known_jars({}, kept) == [ivy / names[1], ivy / names[3]]
    assert connector({}, kept, on_class_path=False) == RESOLVED
    (ivy / names[3]).unlink()
    assert connector({}, kept, on_class_path=True) == RESOLVED
    kept.write_text("{")
    assert known_jars({}, kept) == []
