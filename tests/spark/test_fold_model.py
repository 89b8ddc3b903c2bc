"""The law of the fold's columns: for any records of many tables they are what a loop in Python makes of them."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.spark.compare.fold import carried, changes, fold, segments
from cdc.spark.ddl.lineage import END, Beginning, Segment
from tests.generators.frames import frame_of
from tests.harness.seed import SEED

pytestmark = pytest.mark.spark

TABLES = 150
SEQUENCES = 24
_RECORD = (
    "side STRING, database STRING, table STRING, sequence BIGINT, file STRING, position BIGINT, transaction STRING, "
    "ts_us BIGINT, columns ARRAY<STRING>, key ARRAY<STRING>, chunk STRUCT<repair:BOOLEAN>, valid BOOLEAN, "
    "rows ARRAY<STRUCT<before:ARRAY<STRING>,after:ARRAY<STRING>>>"
)
Image = tuple[tuple[str, str], ...]
Row = tuple[list[str] | None, list[str] | None]


@dataclass
class History:
    """One table's records, and the sequences at which statements altered it (True) or emptied it (False)."""

    name: str
    key: list[str] | None
    database: str = "db"
    records: list[tuple[int, list[str], bool, bool, list[Row]]] = field(default_factory=list)
    statements: dict[int, bool] = field(default_factory=dict)
    dropped: bool = False
    beginning: Beginning = Beginning.OLDER

    def frame_rows(self) -> Iterable[Sequence[object]]:
        for sequence, columns, stated, valid, rows in self.records:
            images = [{"before": before, "after": after} for before, after in rows]
            chunk = {"repair": False} if stated else None
            place = (sequence, "binlog.000001", 100 + sequence, f"u:{sequence}", sequence)
            yield "leader", self.database, self.name, *place, columns, self.key, chunk, valid, images

    def lineage(self, since: int, upto: int) -> list[Segment]:
        """What is known of the table by the statements from sequence ``since`` up to but not including ``upto``."""
        name, segments = (self.database, self.name), []
        limits = [-1, *sorted(at for at in self.statements if since <= at < upto), END]
        era = 0
        gone = max((at for at in limits[1:-1] if not self.statements[at]), default=-1)
        for first, end in pairwise(limits):
            era += first in self.statements and self.statements[first]
            owner = None if end <= gone or (self.dropped and upto == END) else name
            segments.append(Segment(*name, first, end, era, owner, self.beginning))
        return segments


def history(pick: random.Random, name: str) -> History:
    key = pick.choice([None, None, ["a"], ["a"], ["b", "a"]])
    made = History(name, key, database="cdc" if pick.random() < 0.03 else "db")
    made.dropped, made.beginning = pick.random() < 0.05, pick.choice(list(Beginning))
    columns = ["a", "b"]
    for sequence in range(SEQUENCES):
        if pick.random() < 0.08:
            made.statements[sequence] = pick.random() < 0.8
            columns = pick.choice([["a", "b"], ["b", "a"], ["a", "b", "c"]])
        stated = pick.random() < 0.2
        rows = [row(pick, columns, key or ["a"], stated=stated) for _ in range(pick.randint(1, 3))]
        made.records.append((sequence, columns, stated, pick.random() < 0.95, rows))
    return made


def row(pick: random.Random, columns: list[str], key: list[str], *, stated: bool) -> Row:
    images = [[pick.choice(["1", "2", "3" if name in key else "Null"]) for name in columns] for _ in range(2)]
    before, after = pick.choice([(0, 1), (0, 1), (0, None), (None, 1), (0, 0)]) if not stated else pick.choice(
        [(None, 1), (None, 1), (0, None)]
    )  # fmt: skip
    return None if before is None else images[before], None if after is None else images[after]


@dataclass
class Folded:
    """What the loop knows of an identity; the columns of ``fold``."""

    net: int = 0
    image: Image | None = None
    last: int = -1
    era: int = 0
    marked: int | None = None
    breaks: int = 0
    broken: int | None = None
    found: Image | None = None
    stood: Image | None = None

    def find(self, era: int, before: Image | None, *, older: bool) -> None:
        """The first change since the beginning, or since an ALTER, found this image, None if none or a chunk."""
        if self.last < 0 or self.era != era:
            self.found = before if self.last >= 0 or older else None
            self.stood = self.image if self.found is not None else None

    def change(
        self, sequence: int, era: int, *, keyed: bool, stated: bool, before: Image | None, after: Image | None
    ) -> None:
        if keyed and self.last >= 0 and self.era == era:
            broke = self.image != (after if stated else before)
            self.breaks += broke
            self.broken = sequence if broke else self.broken
        self.net += (after is not None) - (before is not None)
        self.image, self.last, self.era = after, sequence, era
        self.marked = sequence if stated else self.marked


def by_a_loop(made: History) -> dict[Any, Folded]:
    found: dict[Any, Folded] = {}
    lives = made.lineage(0, END)
    for sequence, columns, stated, valid, rows in made.records:
        (life,) = (each for each in lives if each.first <= sequence < each.end)
        if not valid or made.database == "cdc" or life.owner is None:
            continue
        for before, after in rows:
            for one, other in _steps(columns, before, after, made.key):
                known = one if one is not None else other
                assert known is not None
                identity = _key(known, made.key) if made.key else known
                row = found.setdefault((made.name, made.key is not None, identity), Folded())
                older = made.beginning is Beginning.OLDER
                row.find(life.era, one if made.key and not stated else None, older=older)
                row.change(sequence, life.era, keyed=made.key is not None, stated=stated, before=one, after=other)
    now = lives[-1]
    return {} if now.owner is None else {known: replace(row, era=row.era - now.era) for known, row in found.items()}


def _steps(
    columns: list[str], before: list[str] | None, after: list[str] | None, key: list[str] | None
) -> list[tuple[Image | None, Image | None]]:
    one, other = (image if image is None else _image(columns, image) for image in (before, after))
    if one is None or other is None or (key and _key(one, key) == _key(other, key)):
        return [(one, other)]
    return [(one, None), (None, other)]


def _key(image: Image, key: list[str]) -> Image:
    return tuple((name, dict(image)[name]) for name in key)


def _image(columns: list[str], values: list[str]) -> Image:
    return tuple(sorted((name, content) for name, content in zip(columns, values, strict=True) if content != "Null"))


def collected(folded: DataFrame) -> dict[Any, Folded]:
    def image(pairs: Any) -> Image | None:
        return None if pairs is None else tuple((pair["column"], pair["value"]) for pair in pairs)

    return {
        (row["table"], row["keyed"], image(row["identity"])): Folded(
            row["net"], image(row["image"]), row["last"]["sequence"], row["era"],
            row["marked"] and row["marked"]["sequence"], row["breaks"], row["broken"] and row["broken"]["sequence"],
            image(row["found"]), image(row["stood"]),
        )
        for row in folded.collect()
    }  # fmt: skip


@pytest.fixture(scope="module")
def histories() -> list[History]:
    pick = random.Random(SEED)
    return [history(pick, f"t{number}") for number in range(TABLES)]


def _lives(spark: SparkSession, histories: list[History], since: int, upto: int) -> DataFrame:
    return segments(spark, [each for made in histories for each in made.lineage(since, upto)])


@pytest.mark.parametrize("cut", [None, SEQUENCES // 2], ids=["whole", "on_from_a_fold"])
def test_any_records(spark: SparkSession, histories: list[History], cut: int | None) -> None:
    records = frame_of(spark, [row for made in histories for row in made.frame_rows()], _RECORD)
    if cut is None:
        lives = _lives(spark, histories, 0, END)
        folded = fold(changes(records, lives))
    else:
        lives, later = _lives(spark, histories, 0, cut), _lives(spark, histories, cut, END)
        before = fold(changes(records.where(f"sequence < {cut}"), lives))
        since = changes(records.where(f"sequence >= {cut}"), later)
        folded = fold(carried(before, later).unionByName(since))
    expected = {known: row for made in histories for known, row in by_a_loop(made).items()}
    assert collected(folded) == expected, f"CDC_SEED={SEED}"
    assert sum(row.stood is not None for row in expected.values()) > TABLES / 10
    assert sum(row.breaks > 1 for row in expected.values()) > TABLES / 10
