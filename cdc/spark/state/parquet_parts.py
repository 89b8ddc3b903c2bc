"""Reads and writes the Parquet parts of a state, checks that they are complete and match state.json, and merges them
with the parts of a new generation.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc.errors import UserError
from cdc.spark.folders import Folder, as_pattern
from cdc.spark.input.records import with_new_fields
from cdc.spark.private_names import hadoop_settings, java_class
from cdc.spark.state.coverage import START_OVER, Covered, Held, needed_later, newest_rows, rows_upto, sorted_layer
from cdc.spark.state.folder import files

__all__ = ["ParquetParts", "part_key", "rows_in", "write"]

# Writes a DataFrame as Parquet and checks that the driver finds every row that the executors wrote.
#
# An executor writes to the path on its own machine. If that folder is not shared with the driver, the files are lost
# without an error: the driver commits the files that it finds, and it may find none.

_CLASSES = (
    "org.apache.hadoop.fs.Path", "org.apache.parquet.hadoop.util.HadoopInputFile",
    "org.apache.parquet.hadoop.ParquetFileReader",
)  # fmt: skip
_OBSERVATION_SECONDS = 60.0  # Spark delivers the observed count within this time or never


def write(frame: DataFrame, folder: Folder, name: str, *, option: str, pages: Mapping[str, int] | None = None) -> int:
    """Writes ``frame`` to the new folder ``name`` in ``folder``, which only its owner can read; returns the number of
    rows.

    ``pages`` are Parquet options for the size of pages; ``option`` is the command-line option that names the folder.
    Raises UserError if the driver does not find all rows, or cannot protect the files from other users.
    """
    observation = Observation()
    frame.observe(observation, F.count(F.lit(1)).alias("rows")).write.options(**pages or {}).parquet(folder.uri(name))
    observed = _observed(observation)
    written, found = frame.count() if observed is None else observed, rows_in(frame.sparkSession, folder, name)
    if found != written:
        raise UserError(
            f"Spark's executors wrote {written} rows, but the driver finds {found}",
            code="CDC-AUDIT-FILES",
            where=f"{option}: {folder.at(name)}",
            hint="name a folder that the driver and all executors share",
        )
    try:
        folder.tighten(name)
    except OSError as error:
        raise UserError(
            f"cannot make the files unreadable for other users: {error}",
            code="CDC-AUDIT-FILES",
            where=f"{option}: {folder.at(name)}",
            hint="run executors as the driver's user, and name a folder whose file system has file modes",
        ) from None
    return written


def _observed(observation: Observation) -> int | None:
    """Returns the number of rows that Spark counted while writing; None if Spark does not report it, for instance
    because its event queue is full."""
    found: list[int] = []
    # Observation.get has no timeout, so another thread waits for it.
    waiting = threading.Thread(target=lambda: found.append(int(observation.get["rows"])), name="rows", daemon=True)
    waiting.start()
    waiting.join(_OBSERVATION_SECONDS)
    return found[0] if found else None


def rows_in(spark: SparkSession, folder: Folder, name: str) -> int:
    """Counts the rows in the Parquet files of ``name`` in ``folder``; the driver reads the counts from the files'
    footers.
    """
    hadoop, rows = hadoop_settings(spark), 0
    # Each class is looked up once, by its whole name.
    hadoop_paths, files, readers = (java_class(spark, name) for name in _CLASSES)
    for entry in folder.entries(name):
        if not entry.name.endswith(".parquet"):
            continue
        reader = readers.open(files.fromPath(hadoop_paths(folder.uri(f"{name}/{entry.name}")), hadoop))
        try:
            rows += reader.getRecordCount()
        finally:
            reader.close()
    return rows


_MOST_GENERATIONS = 16  # if a part has this number of generations, some are merged into the next generation


def part_key(generation: int, name: str) -> str:
    """Returns the name of a part of a generation, as it is used in the folder and in state.json."""
    return f"{generation}/{name}"


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """The parts of a state in ``folder``. ``pointer``, the content of state.json, lists them; it is None if no state
    was saved.

    ``checked`` caches whether parts are complete. The results stay valid because this process holds the state's lock,
    so that no other process writes parts.
    """

    spark: SparkSession
    folder: Folder
    pointer: dict[str, Any] | None = None
    checked: dict[str, bool] = field(default_factory=dict)

    @property
    def generations(self) -> dict[str, list[int]]:
        """Maps the name of each part to its valid generations, oldest first."""
        return self.pointer["parts"] if self.pointer else {}

    def files(self, parts: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
        """Maps each part and generation to its number of files and their size in bytes."""
        keys = [part_key(at, name) for name, found in parts.items() for at in found]
        return {key: files(self.folder, key) for key in keys}

    def counts(self, parts: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Maps each part and generation to its number of rows, if the version of cdc that saved it counted the rows."""
        known = self.pointer.get("counts", {}) if self.pointer else {}
        keys = (part_key(number, name) for name, numbers in parts.items() for number in numbers)
        return {key: known[key] for key in keys if key in known}

    def lines(self, name: str) -> int:
        """Returns the number of rows in a part. If the version of cdc that saved a generation did not count its rows,
        returns an upper bound: the number of all records.
        """
        assert self.pointer is not None
        keys = [part_key(number, name) for number in self.generations[name]]
        known = self.pointer.get("counts", {})
        covered: int = sum(contents["records"] for contents in self.pointer["contents"].values())
        return sum(known.get(key, covered) for key in keys)

    def frame(self, name: str) -> DataFrame:
        """Reads the rows of a part in all its valid generations. Raises UserError if files are missing or changed."""
        assert self.pointer is not None
        for number in self.generations[name]:
            key = part_key(number, name)
            # If files are missing, Spark reads fewer rows without an error.
            if files(self.folder, key) != self.pointer["files"][key] or not self._has_all_rows(number, name):
                where = self.folder.at(key)
                raise UserError(
                    "files of the state are missing or changed", code="CDC-STATE-DAMAGED", where=where, hint=START_OVER
                )
        return self._read(name, self.generations[name])

    def require_all_transactions(self, transactions: DataFrame, *, where: str) -> None:
        """Raises UserError if the state lacks transactions. This is checked only if an earlier version of cdc, which
        did not count the rows that it wrote, has written files of the state.
        """
        assert self.pointer is not None
        if self.checked.get("all") or self.counts(self.generations).keys() == self.pointer["files"].keys():
            return
        found = dict(map(tuple, transactions.groupBy("side").agg(F.sum("records")).collect()))
        for side, contents in self.pointer["contents"].items():
            if found.get(side, 0) != contents["records"]:
                raise UserError(
                    f"the state lacks transactions of the {side}",
                    code="CDC-STATE-DAMAGED",
                    where=where,
                    hint=START_OVER,
                )
        self.checked["all"] = True

    def new_parts(self, held: Held | None, covered: Covered, number: int) -> dict[str, tuple[int, DataFrame]]:
        """Maps each part's name to a pair: the number of old generations that stay valid, counted from the oldest, and
        the rows of generation ``number``. This generation replaces the old generations that do not stay valid.
        """
        new = {"rows": self._new_layer(covered.rows, held if covered.touched else None, number)}
        if covered.open is not None:
            new["open"] = (0, covered.open)
        if covered.transit is not None:
            new["transit"] = (0, covered.transit.bins)
        for name, frame in (
            ("transactions", rows_upto(covered.transactions, "final", covered.ends)),
            ("records", rows_upto(needed_later(covered), "sequence", covered.ends)),
        ):
            there = self.generations.get(name, [])
            remaining = self._remaining(name, there)
            merged = there[remaining:]
            new[name] = (remaining, self._read(name, merged).unionByName(frame) if merged else frame)
        return new

    def _remaining(self, name: str, there: Sequence[int]) -> int:
        """Returns the number of a part's generations that are not merged, counted from the oldest.

        If there are too many generations, the newest ones are merged. The newest generation that is more than twice as
        large as all later generations together is not merged, nor are the generations before it. So each row is written
        again only a logarithmic number of times, however large the state grows.
        """
        if len(there) < _MOST_GENERATIONS:
            return len(there)
        assert self.pointer is not None
        sizes = [self.pointer["files"][part_key(number, name)][1] for number in there]
        remaining = len(there) - 1
        while remaining and sizes[remaining - 1] <= 2 * sum(sizes[remaining:]):
            remaining -= 1
        return remaining

    def _new_layer(self, rows: DataFrame, below: Held | None, number: int) -> tuple[int, DataFrame]:
        """Returns the number of old layers that stay valid, and the rows of the new layer. ``below`` is the state to
        whose layers the new layer is added; None if the new layer replaces all of them.
        """
        layer = rows.withColumn("generation", F.lit(number))
        if below is None:
            return 0, sorted_layer(layer)
        there = self.generations["rows"]
        remaining = max(1, self._remaining("rows", there))
        if remaining < len(there):
            above = below.layers.where(F.col("generation") > there[remaining - 1])
            layer = newest_rows(above.unionByName(layer)).withColumn("generation", F.lit(number))
        return remaining, sorted_layer(layer)

    def _has_all_rows(self, number: int, name: str) -> bool:
        """Whether the driver finds as many rows as were written."""
        key = part_key(number, name)
        if key not in self.checked:
            # Earlier versions of cdc did not notice if executors wrote to folders of their own machines. Then a part
            # has no file; as an empty part has one file, a part without files has lost its rows.
            wanted = self.counts({name: [number]}).get(key)
            self.checked[key] = (
                files(self.folder, key)[0] > 0 if wanted is None else rows_in(self.spark, self.folder, key) == wanted
            )
        return self.checked[key]

    def _read(self, name: str, generations: Sequence[int]) -> DataFrame:
        assert self.pointer is not None
        schema = with_new_fields(StructType.fromJson(self.pointer["schemas"][name]))
        # An executor that does not find a file must fail, whatever Spark's settings are.
        strict = self.spark.read.schema(schema).options(ignoreMissingFiles=False, ignoreCorruptFiles=False)
        return strict.parquet(*(as_pattern(self.folder.uri(part_key(each, name))) for each in generations))
