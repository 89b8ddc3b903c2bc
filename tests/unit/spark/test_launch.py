"""The options of the JVM of a program's own Spark."""

import pytest

from cdc.spark.job.launch import with_one_collector

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
