"""What an audit keeps in a folder, so that the next one reads only what is new in Kafka.

Of each side all records before a sequence, ``next``, are **covered**: of the leader those up to the watermark, of the
follower its whole transactions. What of them a later audit can still need is kept as Parquet, by **generation**:

    1/leader, 1/follower   the fold of each side, a row for each identity; of the newest generation only
    1/transactions         the transactions (``cdc.spark.watermark``) that this generation covered first
    1/records              statements, and what the consumer noted in tables of its own, of those transactions
    state.json             which generations count, what they are of, where to read on, and what the topics hold

A new generation is written and flushed to disk whole before ``state.json`` names it, in one rename: a crash leaves the
old state or the new one. What no ``state.json`` names is removed by the next audit.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from cdc import __version__
from cdc.errors import UserError
from cdc.filters import CHECKPOINT_DATABASE
from cdc.profile import Profile
from cdc.spark.renamed import renames
from cdc.spark.survey import Contents
from cdc.spark.topics import FOLLOWER, LEADER
from cdc.topic_tail import Partition, partition_name

__all__ = ["Covered", "Held", "State", "can_be_resumed", "identity"]

_FORMAT = 1  # of the folder; another one is refused
_POINTER, _LOCK = "state.json", "lock"
_SIDES = (LEADER, FOLLOWER)
_MOST_GENERATIONS = 16  # then their transactions and records are put together into one
_START_OVER = "remove the folder to audit from the beginning, or name another"
_NEEDED_LATER = f"valid AND (query IS NOT NULL OR (database = '{CHECKPOINT_DATABASE}' AND table != 'checkpoint'))"


@dataclass(frozen=True, slots=True)
class Held:
    """What earlier audits covered: per side the first sequence that is new, where to read on, and what there was."""

    next: Mapping[str, int]
    offsets: Mapping[str, Mapping[Partition, int]]
    contents: Mapping[str, Contents]
    folds: Mapping[str, DataFrame]
    transactions: DataFrame
    records: DataFrame


@dataclass(frozen=True, slots=True)
class Covered:
    """What an audit covered that the state does not hold yet.

    ``ends`` are the last sequences, ``contents`` tell of the topics from their beginning, and ``folds`` too, with their
    ``era`` as ``fold.carried`` wants it; ``records`` and ``transactions`` are those read by this audit.
    """

    ends: Mapping[str, int]
    contents: Mapping[str, Contents]
    folds: Mapping[str, DataFrame]
    transactions: DataFrame
    records: DataFrame


class State:
    """The state in one folder, for one audit after the other; ``close`` lets another process have it."""

    def __init__(self, spark: SparkSession, folder: Path, identity: Mapping[str, Any], lock: IO[str]) -> None:
        self._spark, self._folder, self._identity, self._lock = spark, folder, identity, lock
        self._pointer: dict[str, Any] | None = None

    @classmethod
    def open(cls, spark: SparkSession, folder: Path, identity: Mapping[str, Any]) -> Self:
        """The state in ``folder``, made where it is not there.

        ``identity`` says what it must be of. Raises UserError where it is of something else, damaged, or in use.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            state = cls(spark, folder.resolve(), identity, _locked(folder))
        except OSError as error:
            raise UserError(f"cannot keep a state: {error}", where=f"option --state {folder}") from None
        state._pointer = state._read()
        state._remove_what_nothing_names()
        return state

    def close(self) -> None:
        self._lock.close()

    @property
    def rows(self) -> int:
        """Rows of both folds."""
        return int(self._pointer["rows"]) if self._pointer else 0

    def held(self, topics: Mapping[str, str]) -> Held | None:
        """What is held, None where nothing is. ``topics`` are the ids that Kafka gives the topics as they are now.

        Raises UserError where one was made anew since.
        """
        if self._pointer is None:
            return None
        for topic, number in self._pointer["topics"].items():
            if topics.get(topic) != number:
                raise UserError(f"topic {topic} was made anew since the state was kept", where=self._where(),
                                hint=_START_OVER)  # fmt: skip
        generations = self._pointer["generations"]
        return Held(
            next=self._pointer["next"],
            offsets={side: dict(map(_place, offsets.items())) for side, offsets in self._pointer["offsets"].items()},
            contents={side: _contents(body) for side, body in self._pointer["contents"].items()},
            folds={side: self._frame(side, generations[-1:]) for side in _SIDES},
            transactions=self._frame("transactions", generations),
            records=self._frame("records", generations),
        )

    def keep(self, held: Held | None, covered: Covered, topics: Mapping[str, str]) -> None:
        """Let the next audit go on from what this one ``covered`` beyond ``held``."""
        if held is not None and all(held.next[side] == end + 1 for side, end in covered.ends.items()):
            return
        before = self._pointer["generations"] if self._pointer else []
        number = max(before, default=0) + 1
        together = held if held is not None and len(before) >= _MOST_GENERATIONS else None
        frames = {
            **covered.folds,
            "transactions": _upto(covered.transactions, "final", covered.ends),
            "records": _upto(covered.records.where(_NEEDED_LATER), "sequence", covered.ends),
        }
        if together is not None:
            frames["transactions"] = frames["transactions"].unionByName(together.transactions)
            frames["records"] = frames["records"].unionByName(together.records)
        for name, frame in frames.items():
            frame.write.parquet(self._path(number, name).as_uri())
        offsets = _offsets(covered, held)
        self._point_to({
            **self._identity,
            "generations": [number] if together is not None else [*before, number],
            "schemas": {name: frame.schema.jsonValue() for name, frame in frames.items()},
            "next": {side: end + 1 for side, end in covered.ends.items()},
            "offsets": offsets,
            "contents": _cut(covered),
            "topics": topics,
            "rows": sum(fold.count() for fold in covered.folds.values()),
        })  # fmt: skip
        self._remove_what_nothing_names()

    def _frame(self, name: str, generations: Sequence[int]) -> DataFrame:
        assert self._pointer is not None
        schema = StructType.fromJson(self._pointer["schemas"][name])
        paths = [self._path(number, name).as_uri() for number in generations]
        return self._spark.read.schema(schema).parquet(*paths)

    def _path(self, generation: int, name: str) -> Path:
        return self._folder / str(generation) / name

    def _where(self) -> str:
        return f"option --state {self._folder}"

    def _read(self) -> dict[str, Any] | None:
        try:
            pointer: dict[str, Any] = json.loads((self._folder / _POINTER).read_text())
            wanted = {key: pointer[key] for key in self._identity}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"cannot read the state: {error!r}", where=self._where(), hint=_START_OVER) from None
        for key, value in self._identity.items():
            if wanted[key] != value:
                raise UserError(f"the state was kept with {key} {wanted[key]!r}, now it is {value!r}",
                                where=self._where(), hint=_START_OVER)  # fmt: skip
        return pointer

    def _point_to(self, pointer: dict[str, Any]) -> None:
        """The moment at which the new generation counts: all of it is on the disk, then its name is."""
        for path in sorted((self._folder / str(pointer["generations"][-1])).rglob("*")):
            _flush(path)
        _flush(self._folder)
        aside = self._folder / f"{_POINTER}.new"
        aside.write_text(json.dumps(pointer, indent=1, sort_keys=True) + "\n")
        _flush(aside)
        aside.replace(self._folder / _POINTER)
        _flush(self._folder)
        self._pointer = json.loads(json.dumps(pointer))

    def _remove_what_nothing_names(self) -> None:
        generations = self._pointer["generations"] if self._pointer else []
        for folder in [each for each in self._folder.iterdir() if each.is_dir() and each.name.isdecimal()]:
            if int(folder.name) not in generations:
                shutil.rmtree(folder)
            elif int(folder.name) != generations[-1]:
                for side in _SIDES:
                    shutil.rmtree(folder / side, ignore_errors=True)


def identity(profiles: Mapping[str, Profile], consumer: Profile | None) -> dict[str, Any]:
    """What a state must be of to serve an audit with these profiles."""
    found: dict[str, Any] = {"format": _FORMAT, "version": __version__}
    for side, profile in profiles.items():
        names = profile.kafka.topics()
        found[f"{side} resource"], found[f"{side} topic"] = profile.mysql_resource_name, profile.kafka.topic
        found[f"{side} layout"] = [names.layout, profile.kafka.prefix]
    found["renames"] = dict(renames(profiles, consumer).databases)
    found["filters of the consumer"] = repr(consumer.filters) if consumer else "unknown"
    return found


def can_be_resumed(transactions: DataFrame, contents: Mapping[str, Contents], *, after: int, upto: int) -> bool:
    """Whether the next audit may take what came up to sequence ``upto`` of the leader as settled.

    ``transactions`` are those read by this audit, all beyond sequence ``after``. While the follower is between the
    statement of a CREATE TABLE … SELECT and its rows, and where later records tell which rows of the follower were its
    foreign keys' work (``cdc.spark.cascades``), it may not.
    """
    leader = contents.get(LEADER)
    if leader is not None and leader.silent_keys and contents[FOLLOWER].unchecked:
        return False
    ends_there = transactions.where(f"side = '{LEADER}' AND state = 'whole' AND final = {upto}")
    return upto == after or not ends_there.isEmpty()


def _locked(folder: Path) -> IO[str]:
    lock = (folder / _LOCK).open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UserError("another audit uses the state", where=f"option --state {folder}") from None
    return lock


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _upto(rows: DataFrame, column: str, ends: Mapping[str, int]) -> DataFrame:
    within = F.lit(False)
    for side, end in ends.items():
        within = within | ((F.col("side") == side) & (F.col(column) <= end))
    return rows.where(within)


def _offsets(covered: Covered, held: Held | None) -> dict[str, dict[str, int]]:
    """Where each partition's first record that is not covered can be: after the last one that is."""
    found = {side: {partition_name(place): at for place, at in held.offsets[side].items()} if held else {}
             for side in _SIDES}  # fmt: skip
    rows = (
        _upto(covered.records, "sequence", covered.ends).groupBy("side", "partition").agg(F.max("offset").alias("at"))
    )
    for row in rows.collect():
        found[row["side"]][row["partition"]] = row["at"] + 1
    return found


def _cut(covered: Covered) -> dict[str, dict[str, Any]]:
    """The contents up to where they are covered; names and times may be of what comes later, which is read again."""
    bodies = {}
    for side, contents in covered.contents.items():
        end = covered.ends[side]
        if contents.first is not None and contents.first <= end:
            # The stream is whole, so its sequences count its records.
            cut = replace(contents, records=end + 1 - contents.first, last=end)
            bodies[side] = {
                **asdict(cut),
                "resources": sorted(cut.resources),
                "tables": sorted(cut.tables),
                "unchecked": [(*name, at) for name, at in cut.unchecked.items()],
            }
    return bodies


def _contents(body: Mapping[str, Any]) -> Contents:
    return Contents(**{
        **body,
        "resources": frozenset(body["resources"]),
        "tables": frozenset(map(tuple, body["tables"])),
        "unchecked": {(database, table): at for database, table, at in body["unchecked"]},
    })  # fmt: skip


def _place(item: tuple[str, int]) -> tuple[Partition, int]:
    topic, _, number = item[0].rpartition("/")
    return (topic, int(number)), item[1]
