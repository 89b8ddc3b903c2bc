"""Flink's SQL on Kafka, in a JVM of its own."""

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cdc.sandbox.fetch.jars import fetched_jars, java

__all__ = ["flink_rows"]

_FLINK = "2.0.0"
_ARTIFACTS = (
    *(
        f"org.apache.flink:{name}:{_FLINK}"
        for name in (
            "flink-table-planner-loader", "flink-table-runtime", "flink-table-api-java-bridge", "flink-clients",
            "flink-json", "flink-connector-base",
        )
    ),
    "org.apache.flink:flink-sql-connector-kafka:4.0.1-2.0",
    "org.slf4j:slf4j-nop:1.7.36",
)  # fmt: skip
_OPENED = ("java.base/java.lang", "java.base/java.util", "java.base/java.lang.reflect", "java.base/java.net")
_PROGRAM = """
import org.apache.flink.table.api.*;
import org.apache.flink.types.Row;

public class Query {
  public static void main(String[] statements) throws Exception {
    TableEnvironment environment = TableEnvironment.create(EnvironmentSettings.inStreamingMode());
    environment.getConfig().set("parallelism.default", "1");
    for (int at = 0; at < statements.length - 1; at++) environment.executeSql(statements[at]);
    try (var rows = environment.executeSql(statements[statements.length - 1]).collect()) {
      while (rows.hasNext()) {
        Row row = rows.next();
        StringBuilder line = new StringBuilder("row\\t" + row.getKind().shortString());
        for (int at = 0; at < row.getArity(); at++) line.append("\\t").append(row.getField(at));
        System.out.println(line);
      }
    }
  }
}
"""


def flink_rows(folder: Path, statements: Sequence[str]) -> list[tuple[str, ...]]:
    """Executes ``statements``; returns the rows of the last one, after all of its changes."""
    jars = fetched_jars(f"flink-{_FLINK}", _ARTIFACTS, label=f"Flink {_FLINK}")
    program = folder / "Query.java"
    program.write_text(_PROGRAM)
    opened = [f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED]
    command = [str(java()), "-Xmx512m", *opened, "-cp", f"{jars[0].parent}/*", str(program), *statements]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found: Counter[tuple[str, ...]] = Counter()
    for line in done.stdout.splitlines():
        mark, kind, *values = line.split("\t")
        if mark == "row":
            found[tuple(values)] += 1 if kind in ("+I", "+U") else -1
    assert set(found.values()) <= {0, 1}
    return sorted(values for values, count in found.items() if count)
