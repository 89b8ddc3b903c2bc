"""Measures cdc-web: the first look at a large topic, a row's history after it, its memory, and its pages' sizes.

The records are written straight into Kafka, in turns over all tables; each row is inserted and then updated.
"""

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from measure import BIN, process_cpu_seconds, profile

from cdc.config.profile import Kafka as KafkaSettings
from cdc.config.topic_names import PER_TABLE, SINGLE
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port

_BEGIN_US = 1_764_201_600_000_000
_RESOURCE, _TOPIC = "mysql-srv1", "bench"
_CHANGES = 10  # of each row
_SEARCHES = 20
_SECONDS = 1800
_QUEUED = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=10_000)
    parser.add_argument("--layout", choices=(SINGLE, PER_TABLE), default=SINGLE)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), records=given.records, tables=given.tables, layout=given.layout)


def measure(folder: Path, *, records: int, tables: int, layout: str) -> None:
    leader, follower = (MySql(folder / f"s{number}", server_id=number).start() for number in (1, 2))
    kafka = Kafka(folder / "kafka").start()
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topic=_TOPIC, layout=layout, prefix=_TOPIC)
    print(f"{records:,} records of {tables:,} tables are written, layout {layout}", flush=True)
    write(kafka, settings, records=records, tables=tables)
    try:
        with page(folder, (leader, follower), kafka, settings) as (server, pid):
            first_look(server, pid)
            histories(server, records=records, tables=tables)
            pages(server, records=records)
            print(f"memory of the process: {peak_megabytes(pid):.0f} MB at its most", flush=True)
    finally:
        for each in (leader, follower, kafka):
            each.kill()


def write(kafka: Kafka, settings: KafkaSettings, *, records: int, tables: int) -> None:
    """Writes the records and the commit log's entry."""
    names = settings.topics()
    topics = [names.of_table("shop", f"t{number:05}") for number in range(tables)]
    every = sorted({names.commits, *names.first, *topics})
    admin = kafka.admin()
    # The records have old times, and retention would delete them.
    for begin in range(0, len(every), 500):
        new = [NewTopic(name, 1, config={"retention.ms": "-1"}) for name in every[begin : begin + 500]]
        for created in admin.create_topics(new, request_timeout=300).values():
            created.result()
    producer = Producer({
        "bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "linger.ms": 50,
        "topic.metadata.propagation.max.ms": 600_000,
    })  # fmt: skip
    counts: dict[str, int] = {}
    for sequence in range(records):
        table = sequence % tables
        text = record(sequence, f"t{table:05}", *change(sequence, records=records, tables=tables))
        producer.produce(topics[table], text, f"flv://{_RESOURCE}/shop/t{table:05}")
        while len(producer) > _QUEUED:
            producer.poll(0.1)
        counts[f"{topics[table]}/0"] = counts.get(f"{topics[table]}/0", 0) + 1
    last = dict.fromkeys(counts, records - 1) if settings.layout != SINGLE else {}
    entry = Entry(records, Position("binlog.000001", 4), "", "", counts=counts, last=last)
    producer.produce(names.commits, entry.to_json(), _RESOURCE.encode())
    producer.flush()


def change(sequence: int, *, records: int, tables: int) -> tuple[int, int]:
    """The key of the row that a record changes in its table, and how many changes it had before."""
    rows = max(1, records // tables // _CHANGES)
    number = sequence // tables
    return number % rows, number // rows


def record(sequence: int, table: str, key: int, before: int) -> bytes:
    row = [{"SignedInteger": key}, {"String": f"customer {key} of {table}"}, {"SignedInteger": before}]
    former = [*row[:2], {"SignedInteger": before - 1}]
    operation = {"Update": {"rows": [{"before_cols": former, "after_cols": row}]}}
    body = {
        "uri": f"flv://{_RESOURCE}/shop/{table}", "sequence": sequence,
        "bn_file": {"fileName": "binlog.000001", "offset": 4 + sequence},
        "transaction": {"id": f"3f0ec2a8-0000-11f0-8000-000000000001:{sequence + 1}", "index": 0, "last": True,
                        "ts_us": _BEGIN_US + sequence * 1000},
        "columns": ["id", "name", "n"], "key": ["id"],
        "operation": operation if before else {"Add": {"rows": [{"cols": row}]}},
    }  # fmt: skip
    return json.dumps(body).encode()


class Server:
    """The page, asked by HTTP."""

    def __init__(self, port: int) -> None:
        self.port = port

    def get(self, path: str) -> tuple[str, float]:
        """The answer's text, and the seconds until it was there."""
        begun = time.monotonic()
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_SECONDS)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, f"{path}: {answer.status} {text[:500]}"
        connection.close()
        return text, time.monotonic() - begun


@contextmanager
def page(
    folder: Path, servers: tuple[MySql, MySql], kafka: Kafka, settings: KafkaSettings
) -> Iterator[tuple[Server, int]]:
    """Runs ``cdc-web`` for both servers' profiles."""
    files = []
    for number, each in enumerate(servers):
        file = profile(folder / f"{number}.toml", each, kafka, topic=_TOPIC)
        text = file.read_text().replace("[kafka]\n", f'[kafka]\nlayout = "{settings.layout}"\nprefix = "{_TOPIC}"\n')
        file.write_text(f'mysql_resource_name = "{_RESOURCE}"\n{text}[web]\ncache = "{folder}/cache"\n')
        files.append(file)
    port = free_port()
    process = subprocess.Popen([BIN / "cdc-web", *files, "--listen", f"127.0.0.1:{port}"])
    server = Server(port)
    try:
        while True:
            try:
                server.get("/healthz")
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        yield server, process.pid
    finally:
        process.terminate()
        process.wait()


def first_look(server: Server, pid: int) -> None:
    """Requests the records until all are in the index."""
    begun, cpu = time.monotonic(), process_cpu_seconds(pid)
    text, seconds = server.get("/streams/1/records")
    print(f"first look at the records: a page after {seconds:.2f} s", flush=True)
    while "data-refresh" in text:
        time.sleep(1)
        text, _ = server.get("/streams/1/records")
    print(
        f"all indexed after {time.monotonic() - begun:.0f} s, {process_cpu_seconds(pid) - cpu:.0f} CPU seconds; "
        f"memory {peak_megabytes(pid):.0f} MB at its most",
        flush=True,
    )


def histories(server: Server, *, records: int, tables: int) -> None:
    """Searches the history of rows, with their table and in all tables."""
    taken: dict[str, list[float]] = {"key and table": [], "key alone": []}
    for number in range(_SEARCHES):
        sequence = number * (records // _SEARCHES)
        key, _ = change(sequence, records=records, tables=tables)
        for name, table in (("key and table", f"shop.t{sequence % tables:05}"), ("key alone", "")):
            text, seconds = server.get(f"/streams/1/records?table={table}&key={key}")
            assert "/streams/1/records/" in text, text
            taken[name].append(seconds)
    for name, times in taken.items():
        ordered = sorted(times)
        print(
            f"a history by {name}: median {ordered[len(ordered) // 2]:.3f} s, at most {ordered[-1]:.3f} s", flush=True
        )


def pages(server: Server, *, records: int) -> None:
    """Requests each kind of page; prints how long it took, its bytes and its number of elements."""
    middle = records // 2
    paths = [
        "/", "/streams/1/records", "/streams/1/records?table=shop.*", "/streams/1/records?table=shop.t0*&kind=Update",
        "/streams/1/records?kind=Delete", "/streams/1/records?since=2025-11-27T00:05&upto=2025-11-27T00:06",
        f"/streams/1/records?sequence={middle}-", f"/streams/1/records/{middle}",
        f"/streams/1/transactions/{middle}", "/streams/1/tables?text=t009", "/streams/1/tables?text=", "/topics",
        "/topics?name=t0999", f"/clusters/1/topics/{_TOPIC}.commits",
    ]  # fmt: skip
    for path in paths:
        text, seconds = server.get(path)
        print(f"{seconds:8.3f} s {len(text.encode()):9,} bytes {elements(text):7,} elements  {path}", flush=True)


def elements(html: str) -> int:
    """The number of elements in a page."""
    return len(re.findall(r"<[a-z]", html))


def peak_megabytes(pid: int) -> float:
    """The largest resident size of a process so far (proc(5), VmHWM)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


if __name__ == "__main__":
    main()
