"""Runs the comparison and prints it as a table in Markdown: docs/comparison.md.

python -m bench.debezium [--scale 1.0] [--kills 3] [--seconds 15] [--questions types,swaps,ddl,kills,speed]
"""

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.debezium import all_types, ddl, kills, speed, swaps
from bench.debezium.connect import CONNECT, HEAP, VERSION, WORKER
from bench.debezium.pipelines import KEYLESS, SINK, SOURCE, Cdc, Debezium, Pipeline, Sink
from bench.debezium.stage import Stage, execute
from bench.debezium.table import Row, heading, line
from cdc import __version__
from cdc.sandbox.server import kafka

_QUESTIONS = ("types", "swaps", "ddl", "kills", "speed")
_PIPELINES = ("cdc", "Debezium")
_SINKS = (
    Sink(swaps.DATABASE),
    Sink(swaps.BUFFERED, settings={"use.reduction.buffer": "true"}),
    Sink(ddl.DATABASE),
    Sink(kills.DATABASE, f"(?!{kills.KEYLESS_TABLE}$).*"),
    Sink(kills.DATABASE, kills.KEYLESS_TABLE, KEYLESS),
    Sink(speed.DATABASE),
)

_SETTINGS = {
    "the worker": WORKER,
    "the connector": SOURCE,
    "the connector for `all_types.sql`": all_types.LENIENT,
    "the sinks": SINK,
    "the sinks of tables without a key": KEYLESS,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", default=",".join(_QUESTIONS), help="which to ask (default %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the backlogs (default %(default)s)")
    parser.add_argument("--kills", type=int, default=3, help="of each pipeline (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=15.0, help="of the steady load (default %(default)s)")
    options = parser.parse_args()
    # Short, since the path of a server's socket has at most 100 bytes.
    with tempfile.TemporaryDirectory(prefix="dbz-") as folder, Stage(Path(folder)) as stage:
        for each in (*heading(["what ran"]), *about(stage), "", *heading(_PIPELINES)):
            print(each, flush=True)
        for row in asked(stage, options):
            print(line(row, _PIPELINES), flush=True)
    return 0


def about(stage: Stage) -> Iterator[str]:
    """The day, the versions, the machine and the settings, as lines of a table."""
    ((mysql,),) = execute(stage.leader, "SELECT VERSION()")
    (memory,) = re.findall(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    load = f"load average {os.getloadavg()[0]:.0f} at the start"
    facts = {
        "day": f"{datetime.now(UTC):%d %B %Y}",
        "machine": f"{os.cpu_count()} cores and {int(memory) >> 20} GB, which all share; {load}",
        "servers": f"MySQL {mysql}, Kafka {kafka.VERSION}",
        "cdc": f'{__version__}, with default settings; `consumer.engine = "InnoDB"` for `all_types.sql`',
        "Debezium": f"{VERSION} with its JDBC sink, in one worker of Kafka Connect {CONNECT}, `{HEAP}`",
    } | {f"settings of {name}": listed(settings) for name, settings in _SETTINGS.items()}
    for name, text in facts.items():
        yield line(Row(name, {"": text}), [""])


def listed(settings: Mapping[str, str]) -> str:
    return ", ".join(f"`{key}={value}`" for key, value in settings.items())


def asked(stage: Stage, options: argparse.Namespace) -> Iterator[Row]:
    questions = options.questions.split(",")
    if "types" in questions:
        stage.start_worker(all_types.RECORDS_LOGGED)
        yield from all_types.rows(stage)
    if others := [each for each in _QUESTIONS[1:] if each in questions]:
        pipelines = both(stage)
        if "swaps" in others:
            yield from swaps.rows(stage, pipelines)
        if "ddl" in others:
            yield from ddl.rows(stage, pipelines)
        if "kills" in others:
            yield from kills.rows(stage, pipelines, kills=options.kills)
        if "speed" in others:
            yield from speed.rows(stage, pipelines, scale=options.scale, seconds=options.seconds)


def both(stage: Stage) -> Sequence[Pipeline]:
    """Starts both pipelines for all questions but the first, with a JVM that has not done other work."""
    stage.start_worker()
    databases = sorted({each.database for each in _SINKS})
    pipelines: tuple[Pipeline, ...] = (
        Cdc(stage, "main", databases),
        Debezium(stage, "main", databases, sinks=_SINKS),
    )
    for each in pipelines:
        each.start()
    for name in databases:
        stage.create_database(name)
    return pipelines


if __name__ == "__main__":
    sys.exit(main())
