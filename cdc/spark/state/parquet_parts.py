"""Reads the Parquet parts of a state, checks them against state.json, and merges them with the parts of a new
generation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc.errors import UserError
from cdc.spark.folders.folder import Folder
from cdc.spark.input.records import with_new_fields
from cdc.spark.state.coverage import Covered, Held, needed_later, rows_upto
from cdc.spark.state.folder import files
from cdc.spark.state.identity import START_OVER
from cdc.spark.state.layers import newest_rows, sorted_layer
from cdc.spark.state.parquet_check import rows_in

__all__ = ["ParquetParts", "part_key"]

_MOST_GENERATIONS = 16  # if a part has this number of generations, some are merged into the next generation


def part_key(generation: int, name: str) -> str:
    """Returns the name of a part of a generation, as it is used in the folder and in state.json."""
    return f"{generation}/{name}"


@dataclass(frozen=True, slots=True)
class ParquetParts:
    """The parts of a state in ``folder``. ``pointer``, the content of state.json, lists them; it is None without a
    state.

    ``checked`` remembers which parts were found complete: only the process that holds the lock writes parts.
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
        """Raises UserError if the state lacks transactions. This is checked only for a state with files whose rows were
        not counted when an earlier version of cdc wrote them.
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
        the rows of generation ``number``, which replaces the other generations.
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

        If there are too many generations, a generation is not merged if it is more than twice as large as all later
        generations together. So each row is written again a logarithmic number of times, however large the state grows.
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
        """Returns the number of old layers that stay valid and the rows of the new layer. Without ``below`` no old
        layer stays.
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
            # has no file, while an empty part has one file.
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
        return strict.parquet(*(self.folder.uri(part_key(each, name)) for each in generations))
