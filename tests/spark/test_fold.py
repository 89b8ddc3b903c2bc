"""The law of the fold: whatever the history, the fold of its records is what the tables hold in the end."""

import json
import os
import random
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from cdc.spark.compare.fold import changes, fold, segments
from cdc.spark.ddl.lineage import lineage
from cdc.spark.input.records import LEADER, parse
from cdc.spark.streams.contents import statements, survey
from tests.generators.streams import Stream, Table, messages, query

pytestmark = pytest.mark.spark

SEEDS = int(os.environ.get("CDC_FOLD_SEEDS", "1"))
TABLES = 120
CHANGES = 25
Row = tuple[object, ...]


class Model:
    """Tables as a server keeps them, and the stream it would log for each change."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.stream = Stream()
        self.shapes: dict[str, Table] = {}
        self.rows: dict[str, list[Row]] = {}

    def create(self, name: str, *, keyed: bool) -> None:
        self.shapes[name] = Table(f"db/{name}", ["a", "b"], ["a"] if keyed else None)
        self.rows[name] = []
        self.stream.transaction(query("CREATE TABLE", "db", ("CreateTable", f"db/{name}")))

    def step(self, name: str) -> str:
        """One random change of the table, which has the name that is returned from then on."""
        pick = self.random.random()
        if pick < 0.45 or not self.rows[name]:
            self._insert(name)
        elif pick < 0.65:
            self._delete(name)
        elif pick < 0.88:
            self._update(name)
        else:
            return self._define(name)
        return name

    def _row(self, name: str, *, beside: list[Row]) -> Row | None:
        row: Row = (self.random.randrange(8), self.random.choice([None, "x", "y"]))
        row += (self.random.choice([None, 1]),) * (len(self.shapes[name].columns) - 2)
        taken = {other[0] for other in beside}
        return None if self.shapes[name].key and row[0] in taken else row

    def _insert(self, name: str) -> None:
        rows = []
        for _ in range(self.random.randint(1, 3)):
            row = self._row(name, beside=self.rows[name] + rows)
            rows += [row] if row else []
        if rows:
            self.rows[name] += rows
            self.stream.transaction(self.shapes[name].add(*rows))

    def _delete(self, name: str) -> None:
        row = self.rows[name].pop(self.random.randrange(len(self.rows[name])))
        self.stream.transaction(self.shapes[name].delete(row))

    def _update(self, name: str) -> None:
        at = self.random.randrange(len(self.rows[name]))
        before = self.rows[name][at]
        after = self._row(name, beside=self.rows[name][:at] + self.rows[name][at + 1 :])
        if after and after != before:
            self.rows[name][at] = after
            self.stream.transaction(self.shapes[name].update((before, after)))

    def _define(self, name: str) -> str:
        action = self.random.choice(["truncate", "recreate", "rename", "alter"])
        shape = self.shapes[name]
        if action == "truncate":
            self.rows[name] = []
            self.stream.transaction(query("TRUNCATE", "db", ("TruncateTable", shape.name)))
        elif action == "recreate":
            self.stream.transaction(query("DROP TABLE", "db", ("DropTable", shape.name)))
            self.create(name, keyed=not shape.key)
        elif action == "alter" and len(shape.columns) == 2:
            # The server adds a NULL to every row and logs none of them.
            self.shapes[name] = Table(shape.name, [*shape.columns, "c"], shape.key)
            self.rows[name] = [(*row, None) for row in self.rows[name]]
            self.stream.transaction(query("ALTER TABLE", "db", ("AlterTable", shape.name)))
        elif action == "rename":
            new = f"{name}r"
            self.stream.transaction(query("RENAME TABLE", "db", ("RenameTable", shape.name, f"db/{new}")))
            self.shapes[new] = Table(f"db/{new}", shape.columns, shape.key)
            self.rows[new] = self.rows.pop(name)
            del self.shapes[name]
            return new
        return name

    def held(self) -> Counter[tuple[str, frozenset[tuple[str, str]]]]:
        """Every row of every table, as its image with NULLs left out."""
        return Counter(
            (
                name,
                frozenset((c, _json(v)) for c, v in zip(self.shapes[name].columns, row, strict=True) if v is not None),
            )
            for name, rows in self.rows.items()
            for row in rows
        )


def _json(content: object) -> str:
    return json.dumps({"SignedInteger" if isinstance(content, int) else "String": content})


def _history(seed: int) -> Model:
    """Many tables whose changes alternate in one stream: one Spark job checks them all."""
    model = Model(seed)
    names = [f"t{number}" for number in range(TABLES)]
    for number, name in enumerate(names):
        model.create(name, keyed=number % 2 == 0)
    for _ in range(TABLES * CHANGES):
        at = model.random.randrange(TABLES)
        names[at] = model.step(names[at])
    return model


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_fold_is_what_the_tables_hold(spark: SparkSession, seed: int) -> None:
    model = _history(seed)
    records = parse(messages(spark, {LEADER: model.stream})).persist()
    acts = statements(records).result()[LEADER]
    lives = segments(spark, lineage(survey(records).result()[LEADER].tables, acts))
    folded = fold(changes(records, lives)).collect()
    found: Counter[tuple[str, frozenset[tuple[str, str]]]] = Counter()
    for row in folded:
        image = row["image"] if row["keyed"] else row["identity"]
        there = int(image is not None) if row["keyed"] else row["net"]
        assert there >= 0
        if there:
            pairs = frozenset((pair["column"], json.dumps(json.loads(pair["value"]))) for pair in image)
            found[row["table"], pairs] += there
    assert found == model.held()
    assert sum(row["net"] for row in folded) == sum(model.held().values())
    # Each row's before image was what its last change had left.
    assert not [row for row in folded if row["breaks"]]
    records.unpersist()
