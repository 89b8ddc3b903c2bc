"""The options of the JVM of a program's own Spark."""

from pathlib import Path

import pytest

from cdc.spark.job.launch import environment_of, with_one_collector

OURS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:+UseStringDeduplication"]


@pytest.mark.parametrize(
    ("name", "options", "kept"),
    [
        ("JAVA_TOOL_OPTIONS", "-Xss2m -XX:+UseG1GC", [OURS[0], OURS[2]]),
        ("SPARK_SUBMIT_OPTS", "-XX:+UseZGC", [OURS[0], OURS[2]]),
        ("JDK_JAVA_OPTIONS", "-XX:+UseStringDeduplication -XX:-UseParallelGC", OURS),
        ("OTHER", "-XX:+UseG1GC", OURS),
    ],
)
def test_a_jvm_gets_no_second_collector(name: str, options: str, kept: list[str]) -> None:
    assert with_one_collector(OURS, {name: options}) == kept


@pytest.mark.parametrize(
    ("given", "locale"),
    [
        ({"LC_ALL": "C"}, "C.UTF-8"),
        ({}, "C.UTF-8"),
        ({"LC_ALL": "", "LC_CTYPE": "POSIX", "LANG": "de_DE.UTF-8"}, "C.UTF-8"),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, None),
        ({"LC_ALL": "de_DE.UTF-8", "LANG": "C"}, "de_DE.UTF-8"),
    ],
)
def test_the_jvm_knows_all_names_of_files(given: dict[str, str], locale: str | None) -> None:
    assert environment_of(Path("spark"), given).get("LC_ALL") == locale
