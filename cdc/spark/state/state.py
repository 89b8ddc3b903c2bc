"""What an audit keeps in a folder, so that the next one reads only what is new in Kafka.

What of the records covered (``state.coverage``) a later audit can still need is kept as Parquet, in **parts** by
**generation**:

    1/rows          a layer (``state.layers``) of the rows of both sides, one for each identity
    1/open          the hashes of those of which there is more to tell than a count; the newest counts
    1/transit       how long transactions took (``lag.transit``); the newest counts
    1/transactions  the transactions (``streams.watermark``) that this generation covered first
    1/records       of its records statements, what the consumer noted in tables of its own, and those of which the
                    report tells where in Kafka they are
    state.json      which generations of each part count and how large their files are, what they are of, where to read
                    on, what the topics hold, and the last verdict

A new generation is written and flushed to disk whole before ``state.json`` names it, in one rename: a crash leaves the
old state or the new one. What no ``state.json`` names is removed by the next audit. A folder that holds anything else,
and no ``state.json``, is somebody's own and refused before anything is put there.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc.errors import UserError
from cdc.service.private_files import make_folder, write_text
from cdc.spark.input.local_frame import literal
from cdc.spark.input.records import as_parsed
from cdc.spark.state.coverage import (
    Covered,
    Held,
    arrivals_after,
    contents_from,
    contents_of,
    needed_later,
    offsets_after,
    place,
    upto,
    verdict_from,
    verdict_of,
)  # fmt: skip
from cdc.spark.state.folder import (
    ASIDE,
    POINTER,
    files,
    flush,
    flush_all,
    locked,
    remove_all_but,
    require_ours,
    tightened,
)  # fmt: skip
from cdc.spark.state.identity import START_OVER, identity, pointer_of
from cdc.spark.state.layers import newest
from cdc.spark.state.parquet_check import location, rows_in, write

__all__ = ["State", "identity"]

_MOST_GENERATIONS = 16  # of a part; then some are put together into one


class State:
    """The state in one folder, for one audit after the other; ``close`` lets another process have it."""

    def __init__(self, spark: SparkSession, folder: Path, identity: Mapping[str, Any], lock: IO[str]) -> None:
        self._spark, self._folder, self._identity, self._lock = spark, folder, identity, lock
        self._pointer: dict[str, Any] | None = None
        self._found: dict[str, bool] = {}

    @classmethod
    def open(cls, spark: SparkSession, folder: Path, identity: Mapping[str, Any]) -> Self:
        """The state in ``folder``, made where it is not there.

        ``identity`` says what it must be of. Raises UserError where it is of something else, damaged, or in use, and
        where the folder is not one of a state.
        """
        try:
            make_folder(folder)
            require_ours(folder)
            state = cls(spark, folder.absolute(), identity, locked(folder))
        except OSError as error:
            raise UserError(f"cannot keep a state: {error}", where=f"option --state {folder}") from None
        try:
            state._pointer = state._read()
            state._remove_what_nothing_names()
            tightened(state._folder, state._parts())
        except BaseException:
            state.close()
            raise
        return state

    def close(self) -> None:
        self._lock.close()

    def held(self, topics: Mapping[str, Mapping[str, str]]) -> Held | None:
        """What is held, None where nothing is. ``topics`` are per side the ids that Kafka gives its topics now.

        Raises UserError where one was made anew since, or files of the state are not those that were kept.
        """
        pointer = self._pointer
        if pointer is None:
            return None
        for side, ids in pointer["topics"].items():
            for topic, number in ids.items():
                if topics[side].get(topic) != number:
                    raise UserError(f"topic {topic} of the {side} was made anew since the state was kept",
                                    where=self._where(), hint=START_OVER)  # fmt: skip
        frames = {name: self._frame(name) for name in pointer["parts"]}
        self._require_all_transactions(frames["transactions"])
        return Held(
            next=pointer["next"],
            offsets={side: dict(map(place, offsets.items())) for side, offsets in pointer["offsets"].items()},
            arrivals=pointer["arrivals"],
            contents={side: contents_from(body) for side, body in pointer["contents"].items()},
            layers=frames["rows"],
            rows=pointer["rows"],
            above=pointer["above"],
            open=frames.get("open", literal(self._spark, [], "hash BIGINT")),
            opened=pointer["opened"],
            **verdict_from(pointer["verdict"], frames.get("transit")),
            transactions=frames["transactions"],
            records=frames["records"],
        )

    def keep(self, held: Held | None, covered: Covered, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Let the next audit go on from what this one ``covered`` beyond ``held``; where it fails, from ``held``."""
        if held is not None and all(held.next[side] == end + 1 for side, end in covered.ends.items()):
            return
        # What a removal that failed left would be in the way.
        self._remove_what_nothing_names()
        try:
            self._save(held, covered, topics)
        except Exception:
            # It may be what filled the disk, on which the report needs a place, too.
            self._remove_what_nothing_names()
            raise
        self._remove_what_nothing_names()

    def _save(self, held: Held | None, covered: Covered, topics: Mapping[str, Mapping[str, str]]) -> None:
        before = self._parts()
        number = max((each for numbers in before.values() for each in numbers), default=0) + 1
        new = self._new_parts(held, covered, number)
        make_folder(self._folder / str(number))
        counts = {
            _key(number, name): write(frame, self._path(number, name), option="option --state")
            for name, (_, frame) in new.items()
        }
        parts = {name: [*before.get(name, [])[:stay], number] for name, (stay, _) in new.items()}
        below = held if covered.touched else None
        count = counts[_key(number, "rows")]
        above = count + (below.above if below and len(parts["rows"]) > 2 else 0)
        self._point_to(number, {
            **self._identity,
            "parts": parts,
            "schemas": {name: frame.schema.jsonValue() for name, (_, frame) in new.items()},
            "files": {_key(at, name): files(self._path(at, name)) for name, found in parts.items() for at in found},
            "counts": {**self._counts(parts), **counts},
            "rows": below.rows if below else count,
            "above": above if below else 0,
            "opened": counts.get(_key(number, "open"), 0),
            "next": {side: end + 1 for side, end in covered.ends.items()},
            "offsets": offsets_after(covered, held),
            "arrivals": arrivals_after(covered, held),
            "contents": contents_of(covered),
            "topics": topics,
            "verdict": verdict_of(covered),
        })  # fmt: skip

    def _new_parts(self, held: Held | None, covered: Covered, number: int) -> dict[str, tuple[int, DataFrame]]:
        """Of each part how many of its generations still count, from the first one on, and what ``number`` has."""
        new = {"rows": self._new_layer(covered.rows, held if covered.touched else None, number)}
        if covered.open is not None:
            new["open"] = (0, covered.open)
        if covered.transit is not None:
            new["transit"] = (0, covered.transit.bins)
        for name, frame in (
            ("transactions", upto(covered.transactions, "final", covered.ends)),
            ("records", upto(needed_later(covered), "sequence", covered.ends)),
        ):
            there = self._parts().get(name, [])
            stay = self._to_stay(name, there)
            new[name] = (stay, self._read_parts(name, there[stay:]).unionByName(frame) if there[stay:] else frame)
        return new

    def _to_stay(self, name: str, there: Sequence[int]) -> int:
        """How many generations of a part stay as they are: of too many only those that are larger than all after them.

        So what is kept is written again a few times only, however long it grows.
        """
        if len(there) < _MOST_GENERATIONS:
            return len(there)
        assert self._pointer is not None
        sizes = [self._pointer["files"][_key(number, name)][1] for number in there]
        stay = len(there) - 1
        while stay and sizes[stay - 1] <= 2 * sum(sizes[stay:]):
            stay -= 1
        return stay

    def _new_layer(self, rows: DataFrame, below: Held | None, number: int) -> tuple[int, DataFrame]:
        layer = rows.withColumn("generation", F.lit(number))
        if below is None:
            return 0, layer
        there = self._parts()["rows"]
        if len(there) < _MOST_GENERATIONS:
            return len(there), layer
        above = below.layers.where(F.col("generation") > there[0])
        return 1, newest(above.unionByName(layer)).withColumn("generation", F.lit(number))

    def _parts(self) -> dict[str, list[int]]:
        return self._pointer["parts"] if self._pointer else {}

    def _frame(self, name: str) -> DataFrame:
        """What the generations of a part that count have. Raises UserError where files are not those that were kept."""
        assert self._pointer is not None
        for number in self._parts()[name]:
            path = self._path(number, name)
            # Of files that are gone Spark would say nothing, and read fewer rows.
            if files(path) != self._pointer["files"][_key(number, name)] or not self._has_all_rows(number, name):
                raise UserError("files of the state are gone, or not as they were kept", where=str(path),
                                hint=START_OVER)  # fmt: skip
        return self._read_parts(name, self._parts()[name])

    def _counts(self, parts: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """How many rows each generation has that is among ``parts``, as far as the version knew that kept it."""
        known = self._pointer.get("counts", {}) if self._pointer else {}
        named = (_key(number, name) for name, numbers in parts.items() for number in numbers)
        return {key: known[key] for key in named if key in known}

    def _has_all_rows(self, number: int, name: str) -> bool:
        """Whether the driver finds the rows that were written; looked for once, since nobody else writes here."""
        key = _key(number, name)
        if key not in self._found:
            # An empty part has a file, too. Earlier versions did not see where executors wrote into folders of their
            # own: what they kept then has none.
            least = self._counts({name: [number]}).get(key)
            found = rows_in(self._spark, self._path(number, name))
            self._found[key] = found == least if least is not None else files(self._path(number, name))[0] > 0
        return self._found[key]

    def _require_all_transactions(self, transactions: DataFrame) -> None:
        """Raises UserError where a version that did not count what executors wrote lost some of it."""
        assert self._pointer is not None
        if self._found.get("all") or self._counts(self._parts()).keys() == self._pointer["files"].keys():
            return
        found = dict(map(tuple, transactions.groupBy("side").agg(F.sum("records")).collect()))
        for side, contents in self._pointer["contents"].items():
            if found.get(side, 0) != contents["records"]:
                raise UserError(f"the state lacks transactions of the {side}", where=self._where(), hint=START_OVER)
        self._found["all"] = True

    def _read_parts(self, name: str, generations: Sequence[int]) -> DataFrame:
        assert self._pointer is not None
        schema = as_parsed(StructType.fromJson(self._pointer["schemas"][name]))
        # Whatever Spark is set to: an executor that does not find a file must say so.
        strict = self._spark.read.schema(schema).options(ignoreMissingFiles=False, ignoreCorruptFiles=False)
        return strict.parquet(*(location(self._path(each, name)) for each in generations))

    def _path(self, generation: int, name: str) -> Path:
        return self._folder / str(generation) / name

    def _where(self) -> str:
        return f"option --state {self._folder}"

    def _read(self) -> dict[str, Any] | None:
        try:
            text = (self._folder / POINTER).read_text()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"cannot read the state: {error!r}", where=self._where(), hint=START_OVER) from None
        return pointer_of(text, self._identity, where=self._where())

    def _point_to(self, generation: int, pointer: dict[str, Any]) -> None:
        """The moment at which the new generation counts: all of it is on the disk, then its name is."""
        flush_all(self._folder / str(generation))
        aside = self._folder / ASIDE
        write_text(aside, json.dumps(pointer, indent=1, sort_keys=True) + "\n")
        flush(aside)
        aside.replace(self._folder / POINTER)
        # What the folder names now counts, also where it can't be flushed.
        self._pointer = json.loads(json.dumps(pointer))
        flush(self._folder)

    def _remove_what_nothing_names(self) -> None:
        remove_all_but(self._folder, self._parts())


def _key(generation: int, name: str) -> str:
    return f"{generation}/{name}"
