"""Measures whether several consumers, each with a part of the databases, apply faster than one.

    python bench/shares.py [--scale 1.0] [--shapes rows,inserts,updates,mixed] [--shares 2]

The leader has as many databases as there are shares. The same work is done in each, a transaction here, a transaction
there. One follower gets all of it from one topic by one consumer; another one gets each database from a topic of its
own by a consumer of its own, all of which run at the same time. The work waits whole in the topics; the rows before it
are not counted. Each follower is measured twice, in turns; the faster run counts.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path

from consumer import SHAPES, Shape, execute, fill
from measure import BIN, profile, server_cpu_seconds

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql

ROUNDS = 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="of the amounts of work (default %(default)s)")
    parser.add_argument("--shapes", default="rows,inserts,updates,mixed", help="(default %(default)s)")
    parser.add_argument("--shares", type=int, default=2, help="and consumers of the second follower")
    options = parser.parse_args()
    print(f"{'':26}{'':14}{'count':>9}{'wall s':>8}{'CPU s':>8}{'server':>8}{'each/s':>9}{'faster':>8}")
    for key in options.shapes.split(","):
        with tempfile.TemporaryDirectory(prefix="cdc-bench-") as folder:
            measure(Path(folder), SHAPES[key], int(SHAPES[key].count * options.scale / 2), options.shares)
    return 0


def measure(folder: Path, shape: Shape, count: int, shares: int) -> None:
    leader = MySql(folder / "leader", server_id=1).start()
    kafka = Kafka(folder / "kafka").start()
    names = ["bench" if number == 0 else f"bench{number}" for number in range(shares)]
    sources = {"all": _profile(folder / "all.toml", leader, kafka, "all", "*")}
    sources |= {name: _profile(folder / f"{name}.toml", leader, kafka, name, name) for name in names}
    fill_all(leader, shape, names)
    one, several = ["all"], names
    found: dict[int, list[tuple[float, float, float]]] = {len(one): [], len(several): []}
    followers = {}
    for streams in (one, several):
        follower = followers[len(streams)] = MySql(folder / f"of{len(streams)}", server_id=2 + len(streams)).start()
        for name in streams:
            _produce(sources[name])
            _profile(folder / f"to-{name}.toml", follower, kafka, name, "*")
        _apply(folder, streams)
    for round_ in range(ROUNDS):
        work = [renamed(shape.work(count, random.Random(f"{round_} {name}")), name) for name in names]
        if round_ and shape.before == 0:
            execute(leader, [f"TRUNCATE {name}.t" for name in names])
        execute(leader, in_turns(work))
        for source in sources.values():
            _produce(source)
        for streams in (one, several) if round_ % 2 else (several, one):
            os.sync()
            server = server_cpu_seconds(followers[len(streams)])
            wall, cpu = _apply(folder, streams)
            found[len(streams)].append((wall, cpu, server_cpu_seconds(followers[len(streams)]) - server))
    base = min(found[1])[0]
    for number, rounds in found.items():
        wall, cpu, server = min(rounds)
        print(
            f"{shape.name:26}{number:>3}{' consumer(s)':11}{count * shares:9}{wall:8.2f}{cpu:8.2f}{server:8.2f}"
            f"{count * shares / wall:9.0f}{base / wall:8.2f}",
            flush=True,
        )
    for each in (leader, kafka, *followers.values()):
        each.kill()


def _profile(path: Path, server: MySql, kafka: Kafka, name: str, databases: str) -> Path:
    profile(path, server, kafka, topic=name)
    text = path.read_text()
    path.write_text(f'mysql_resource_name = "{name}"\n[filters]\ninclude_dbs = ["{databases}"]\n{text}')
    return path


def _produce(path: Path) -> None:
    subprocess.run([BIN / "cdc-producer", path, "--until-current"], check=True)


def _apply(folder: Path, streams: list[str]) -> tuple[float, float]:
    """Runs a consumer a stream at the same time; returns the wall and CPU seconds until all have ended."""
    begun, cpu = time.monotonic(), 0.0
    started = [subprocess.Popen([BIN / "cdc-consumer", folder / f"to-{name}.toml", "--until-current"])
               for name in streams]  # fmt: skip
    for process in started:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"cdc-consumer ended with {process.returncode}"
        cpu += usage.ru_utime + usage.ru_stime
    return time.monotonic() - begun, cpu


def fill_all(leader: MySql, shape: Shape, names: list[str]) -> None:
    fill(leader, shape)
    for name in names[1:]:
        execute(leader, [f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t ({shape.columns})",
                         f"INSERT INTO {name}.t SELECT * FROM bench.t"])  # fmt: skip


def renamed(statements: Iterator[str], name: str) -> Iterator[list[str]]:
    """Yields the statements of each transaction, on another database."""
    held: list[str] = []
    for statement in statements:
        held.append(statement.replace("bench.t", f"{name}.t"))
        if held[0] != "BEGIN" or statement == "COMMIT":
            yield held
            held = []


def in_turns(work: list[Iterator[list[str]]]) -> Iterator[str]:
    for transactions in zip_longest(*work, fillvalue=[]):
        yield from chain.from_iterable(transactions)


if __name__ == "__main__":
    sys.exit(main())
