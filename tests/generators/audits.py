"""Invented outcomes of audits: for tests of the reports, which need more kinds and sizes than servers give quickly."""

import json
import math
from dataclasses import replace
from random import Random
from typing import Any

from cdc.spark.compare.row_drift import Discontinuity, DriftedRow
from cdc.spark.compare.tally import Table
from cdc.spark.ddl.definitions import SchemaDrift
from cdc.spark.ddl.table_copies import UnderCopy
from cdc.spark.lag import STAGES, WHOLE, Lag, Quantiles, Stage, Stretch, TableLag
from cdc.spark.report.outcome import Audit, Topic
from cdc.spark.streams.consumer_notes import ForeignWrite, Skip
from cdc.spark.streams.integrity import Break

__all__ = ["NASTY", "big", "clean", "drifting", "lag", "unjudged"]

START_US = 1_795_246_726_423_512
HOUR_US = 3_600_000_000
NASTY = (
    '</style><script>alert("1")</script><img src=\'http://evil.example/x\'>&amp;" onload=1 '
    "\u202edrawkcab\u2066 \x00\x1b[2J\n"
)

_LARGEST = {"leader to Kafka": 60_000, "Kafka to follower": 900_000, "follower to Kafka": 25_000, WHOLE: 950_000}


def text(value: str) -> str:
    """A text as images hold it."""
    return json.dumps({"String": value}, ensure_ascii=False)


def number(value: int) -> str:
    """A whole number as images hold it."""
    return json.dumps({"SignedInteger": value})


def quantiles(transactions: int, us: float) -> Quantiles:
    """Times with a median of about ``us``."""
    return Quantiles(transactions, round(us), round(us * 3), round(us * 7.5), round(us * 12))


def lag(*, tables: int = 3, skew_us: int = 0, hours: int = 6, transactions: int = 125_000) -> Lag:
    """A lag with all stages; with ``skew_us`` Kafka's clock is so much ahead of the leader's and the follower's."""
    random = Random(4)
    skews = {"leader to Kafka": skew_us, "Kafka to follower": -skew_us, "follower to Kafka": skew_us, WHOLE: 0}
    stretch_us = hours * HOUR_US // 48 + 1
    stages = {}
    for at, name in enumerate(STAGES):
        median = _LARGEST[name] / 12
        lengths = [median * random.lognormvariate(0, 0.9) + skews[name] for _ in range(4_000)]
        over_time = [
            Stretch(
                START_US + k * stretch_us, _skewed(quantiles(2_600, median * random.uniform(0.6, 1.8)), skews[name])
            )
            for k in range(48)
            if k % 17 != 5
        ]
        known = transactions if name == WHOLE else transactions - 20_000 * at
        stages[name] = Stage(_skewed(quantiles(known, median), skews[name]), _bars(lengths), over_time)
    by_table = [
        TableLag(f"shop.table_{at}", {name: quantiles(9, _LARGEST[name] / (12 + at)) for name in STAGES})
        for at in range(tables)
    ]
    return Lag(transactions, START_US, START_US + hours * HOUR_US, stretch_us, stages, tables, by_table[:1_000])


def _bars(lengths: list[float]) -> list[tuple[int, int, int]]:
    """The bounds of a histogram as ``Stage`` has them: from 64 µs on, each √2 times as long as the one before."""
    counts: dict[tuple[int, int], int] = {}
    for us in lengths:
        octave = math.floor(math.log2(max(abs(us), 64) / 64) * 2)
        near, far = round(64 * 2 ** (octave / 2)), round(64 * 2 ** ((octave + 1) / 2))
        edges = (-64, 64) if abs(us) < 64 else (near, far) if us > 0 else (-far, -near)
        counts[edges] = counts.get(edges, 0) + 1
    return [(*edges, counts[edges]) for edges in sorted(counts)]


def _skewed(told: Quantiles, us: int) -> Quantiles:
    return Quantiles(told.transactions, told.p50_us + us, told.p95_us + us, told.p99_us + us, told.max_us + us)


def topic(resource: str, name: str, *, records: int = 1_204_332) -> Topic:
    """A topic of one partition."""
    offsets = {f"{name}/0": (0, records + 30_000)}
    return Topic(resource, name, records, 0, records - 1, START_US, START_US + 6 * HOUR_US, offsets)


def clean() -> Audit:
    """An outcome without drift."""
    tables = [
        Table("shop", name, rows, rows, 0, 0, 0, f"{rows:016x}", f"{rows:016x}")
        for name, rows in (("customer", 18_204), ("order", 981_442), ("order_line", 4_120_934))
    ]
    return Audit(
        audited_at="2026-11-21T17:31:54+00:00",
        leader=topic("mysql-srv1", "rust-mysql-cdc"),
        follower=topic("mysql-srv1-follower", "rust-mysql-cdc-follower", records=1_290_112),
        sequence=1_204_331,
        tables=tables,
        discontinuities={"leader": 0, "follower": 0},
        lag=lag(),
    )


def unjudged() -> Audit:
    """An outcome with a broken stream."""
    reasons = [
        "topic rust-mysql-cdc is broken (gap, 2 in all): sequence 812 comes, but 811 does not (offset 930)",
        "topic rust-mysql-cdc begins at sequence 17: retention cut it, what came before is not known",
    ]
    breaks = [
        Break("leader", "gap", "rust-mysql-cdc/0", 930, "sequence 812 comes, but 811 does not"),
        Break("leader", "broken", "rust-mysql-cdc/0", 1_204, "not a record"),
    ]
    return replace(clean(), reasons=reasons, breaks=breaks, sequence=None, tables=[], lag=None)


def copying() -> Audit:
    """An outcome with tables that are being copied, and with tables whose rows are not all known from the logs."""
    whole = clean()
    tables = [replace(whole.tables[0], not_compared=1_200), replace(whole.tables[1], older=True), whole.tables[2]]
    under_copy = [UnderCopy("shop", f"archive_{year}", 9 * year if year % 2 else None) for year in range(2000, 2030)]
    return replace(whole, tables=tables, under_copy=under_copy)


def place(sequence: int) -> dict[str, Any]:
    """A place in a binlog."""
    return {"sequence": sequence, "file": "binlog.000012", "position": 4 + 310 * sequence}


def drifting() -> Audit:
    """An outcome with drift of each cause, foreign writes, skipped records, and unlikely names and values."""
    long = "x" * 60_000 + "left " + "y" * 40_000
    order = {
        "id": number(4711),
        "customer": text("Diane"),
        "total": '{"Decimal": "19.90"}',
        "note": text(long),
        "state": '{"Enum": "paid"}',
    }
    changed = order | {"total": '{"Decimal": "29.90"}', "note": text(long.replace("left", "right"))}
    changed.pop("customer")
    nasty = {NASTY: text(NASTY), "العنوان": text("شارع الملك فهد ١٢٣"), "日本": text("寿司🍣" * 40)}
    keys = {"id": number(4711)}
    rows = [
        _row("order", "different", keys, order, changed, "foreign write", columns=["customer", "note", "total"]),
        _row(NASTY[:64], "extra", nasty, None, nasty, "foreign write", keyed=False, rows=3),
        _row("order", "missing", {"id": number(9)}, order | {"id": number(9)}, None, "missing apply"),
        _row(
            "customer",
            "missing",
            {"id": number(12)},
            {"id": number(12), "name": text("Peter")},
            None,
            "skipped sequence",
        ),
        _row("customer", "extra", {"id": number(1)}, None, None, "before-image mismatch"),
        _row(
            "wide",
            "different",
            keys,
            {f"c{n:03}": number(n) for n in range(200)} | keys,
            {f"c{n:03}": number(n + (n == 150)) for n in range(200)} | keys,
            "conflict converged",
            columns=["c150"],
        ),
        _row(
            "stock",
            "different",
            keys,
            keys | {"left": number(3)},
            keys | {"left": number(3), "new": text("")},
            "schema drift",
            columns=["new"],
        ),
    ]
    foreign = [
        ForeignWrite(
            f"22222222-2222-2222-2222-222222222222:{n}",
            "binlog.000003",
            400 * n,
            START_US + n * n * 11_000_000,
            ["shop.order"],
            n,
            None if n % 7 else "UPDATE `order` SET total = 29.90 WHERE id = 4711",
        )
        for n in range(1, 41)
    ]
    whole = clean()
    tables = [
        replace(t, different=2, missing=1, follower_rows=t.leader_rows - 1, follower_checksum="f" * 16)
        if t.table == "order"
        else t
        for t in whole.tables
    ]
    return replace(
        whole,
        tables=[*tables, Table("shop", NASTY[:64], 0, 3, 0, 3, 0, "0", "ab12")],
        drifted_rows=9,
        drifted_by_cause=dict.fromkeys((row.cause for row in rows), 1) | {"foreign write": 4},
        drifted=rows,
        schema_drift=1,
        schema=[
            SchemaDrift(
                "Table",
                "shop",
                "stock",
                "schema drift",
                "follower alone: ALTER TABLE stock ADD new (binlog.000003:1400)",
            )
        ],
        foreign_writes=40,
        foreign=foreign,
        foreign_over_time=[
            (START_US + k * k * 400_000_000, START_US + k * k * 400_000_000 + 180_000_000, 1 + k % 5) for k in range(7)
        ],
        skipped=[Skip(88, "Add, 1 rows of flv://mysql-srv1/shop/customer", "Data too long for column 'name' at row 1")],
        discontinuities={"leader": 0, "follower": 4},
        discontinued=[Discontinuity("follower", "shop", "order", keys, 4, place(900))],
        lag=lag(skew_us=30_000),
    )


def _row(
    table: str,
    kind: str,
    identity: dict[str, str],
    leader: dict[str, str] | None,
    follower: dict[str, str] | None,
    cause: str,
    *,
    columns: list[str] | None = None,
    keyed: bool = True,
    rows: int = 1,
) -> DriftedRow:
    evidence = f"transaction 22222222-2222-2222-2222-222222222222:7 at 2026-11-21 17:02:11, binlog.000003:2800: {cause}"
    return DriftedRow(
        "shop",
        table,
        kind,
        rows,
        keyed,
        identity,
        columns or [],
        leader,
        follower,
        place(12),
        place(14),
        None,
        cause,
        evidence,
        since_us=1_795_000_000_000_000,
    )


def big() -> Audit:
    """An outcome with ten thousand tables, and as many drifted rows as are listed."""
    some = [
        Table(f"db{n % 100:02}", f"t{n:05}", n, n - (n % 250 == 0), int(n % 250 == 0), 0, 0, "0", "0")
        for n in range(10_000)
    ]
    row = drifting().drifted[2]
    listed = [replace(row, table=f"t{250 * (n % 40):05}", identity={"id": number(n)}) for n in range(100)]
    return replace(
        clean(),
        tables=some,
        drifted_rows=13_000,
        drifted_by_cause={"missing apply": 13_000},
        drifted=listed,
        lag=lag(tables=10_000, hours=4_000),
    )
