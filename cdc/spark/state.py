"""What an audit keeps in a folder, so that the next one reads only what is new in Kafka.

What of the records covered (``cdc.spark.covered``) a later audit can still need is kept as Parquet, by **generation**:

    1/leader, 1/follower   the fold of each side, a row for each identity; of the newest generation only
    1/transactions         the transactions (``cdc.spark.watermark``) that this generation covered first
    1/records              of its records statements, what the consumer noted in tables of its own, and those of which
                           the report tells where in Kafka they are
    state.json             which generations count and how large their files are, what they are of, where to read on,
                           and what the topics hold

A new generation is written and flushed to disk whole before ``state.json`` names it, in one rename: a crash leaves the
old state or the new one. Generations that no ``state.json`` names are removed by the next audit. A folder that holds
anything else, and no ``state.json``, is somebody's own and refused before anything is put there.
"""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from cdc import __version__
from cdc.errors import UserError
from cdc.profile import Profile
from cdc.spark.covered import SIDES, Covered, Held, contents_from, contents_of, needed_later, offsets_after, place, upto
from cdc.spark.renamed import renames

__all__ = ["State", "identity"]

_FORMAT = 2  # of the folder; another one is refused
_POINTER, _LOCK = "state.json", "lock"
_ASIDE = f"{_POINTER}.new"
_PARTS = frozenset({*SIDES, "transactions", "records"})
_GENERATION = re.compile("[1-9][0-9]*")  # its name
_PARQUET = re.compile(r"part-.*|[._].*")  # of a Parquet folder: its data, and what Spark calls hidden
_MOST_GENERATIONS = 16  # then their transactions and records are put together into one
_START_OVER = "remove the folder to audit from the beginning, or name another"


class State:
    """The state in one folder, for one audit after the other; ``close`` lets another process have it."""

    def __init__(self, spark: SparkSession, folder: Path, identity: Mapping[str, Any], lock: IO[str]) -> None:
        self._spark, self._folder, self._identity, self._lock = spark, folder, identity, lock
        self._pointer: dict[str, Any] | None = None

    @classmethod
    def open(cls, spark: SparkSession, folder: Path, identity: Mapping[str, Any]) -> Self:
        """The state in ``folder``, made where it is not there.

        ``identity`` says what it must be of. Raises UserError where it is of something else, damaged, or in use, and
        where the folder is not one of a state.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _require_ours(folder)
            state = cls(spark, folder.resolve(), identity, _locked(folder))
        except OSError as error:
            raise UserError(f"cannot keep a state: {error}", where=f"option --state {folder}") from None
        try:
            state._pointer = state._read()
            state._remove_what_nothing_names()
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
        if self._pointer is None:
            return None
        for side, ids in self._pointer["topics"].items():
            for topic, number in ids.items():
                if topics[side].get(topic) != number:
                    raise UserError(f"topic {topic} of the {side} was made anew since the state was kept",
                                    where=self._where(), hint=_START_OVER)  # fmt: skip
        generations = self._pointer["generations"]
        return Held(
            next=self._pointer["next"],
            offsets={side: dict(map(place, offsets.items())) for side, offsets in self._pointer["offsets"].items()},
            contents={side: contents_from(body) for side, body in self._pointer["contents"].items()},
            folds={side: self._frame(side, generations[-1:]) for side in SIDES},
            transactions=self._frame("transactions", generations),
            records=self._frame("records", generations),
            rows=self._pointer["rows"],
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
        before: list[int] = self._pointer["generations"] if self._pointer else []
        number = max(before, default=0) + 1
        frames = {
            "transactions": upto(covered.transactions, "final", covered.ends),
            "records": upto(needed_later(covered), "sequence", covered.ends),
        }
        if held is not None and len(before) >= _MOST_GENERATIONS:
            frames["transactions"] = frames["transactions"].unionByName(held.transactions)
            frames["records"] = frames["records"].unionByName(held.records)
            before = []
        frames.update(covered.folds)
        for name, frame in frames.items():
            frame.write.parquet(self._path(number, name).as_uri())
        files = {str(earlier): self._pointer["files"][str(earlier)] for earlier in before} if self._pointer else {}
        files[str(number)] = {name: _files(self._path(number, name)) for name in frames}
        self._point_to({
            **self._identity,
            "generations": [*before, number],
            "schemas": {name: frame.schema.jsonValue() for name, frame in frames.items()},
            "next": {side: end + 1 for side, end in covered.ends.items()},
            "offsets": offsets_after(covered, held),
            "contents": contents_of(covered),
            "topics": topics,
            "files": files,
            "rows": sum(fold.count() for fold in covered.folds.values()),
        })  # fmt: skip

    def _frame(self, name: str, generations: Sequence[int]) -> DataFrame:
        assert self._pointer is not None
        schema = StructType.fromJson(self._pointer["schemas"][name])
        paths = []
        for number in generations:
            path = self._path(number, name)
            # Of files that are gone Spark would say nothing, and read fewer rows.
            if _files(path) != self._pointer["files"][str(number)][name]:
                raise UserError("files of the state are gone, or not as they were kept", where=str(path),
                                hint=_START_OVER)  # fmt: skip
            paths.append(path.as_uri())
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
        generation = self._folder / str(pointer["generations"][-1])
        for path in [generation, *sorted(generation.rglob("*"))]:
            _flush(path)
        _flush(self._folder)
        aside = self._folder / _ASIDE
        aside.write_text(json.dumps(pointer, indent=1, sort_keys=True) + "\n")
        _flush(aside)
        aside.replace(self._folder / _POINTER)
        # What the folder names now counts, also where it can't be flushed.
        self._pointer = json.loads(json.dumps(pointer))
        _flush(self._folder)

    def _remove_what_nothing_names(self) -> None:
        generations = self._pointer["generations"] if self._pointer else []
        for folder in filter(_is_generation, list(self._folder.iterdir())):
            if int(folder.name) not in generations:
                shutil.rmtree(folder)
            elif int(folder.name) != generations[-1]:
                for side in SIDES:
                    shutil.rmtree(folder / side, ignore_errors=True)


def _require_ours(folder: Path) -> None:
    """Raises UserError where a folder without a state has what no audit put there."""
    found = list(folder.iterdir())
    if _POINTER in (path.name for path in found):
        return
    for path in found:
        if path.name not in (_LOCK, _ASIDE) and not _is_generation(path):
            raise UserError(
                f"the folder is not one of a state: it has {path.name!r} in it",
                where=f"option --state {folder}",
                hint="name an empty folder, or one that is not there yet",
            )


def _is_generation(folder: Path) -> bool:
    """Whether it holds nothing but what ``State.keep`` writes, or as much of it as a crash left."""
    if not _GENERATION.fullmatch(folder.name) or not _is_folder(folder):
        return False
    return all(
        part.name in _PARTS and _is_folder(part) and all(_PARQUET.fullmatch(path.name) for path in part.iterdir())
        for part in folder.iterdir()
    )


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _locked(folder: Path) -> IO[str]:
    # Not "w": whatever has the name of our lock keeps what is in it.
    lock = (folder / _LOCK).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UserError("another audit uses the state", where=f"option --state {folder}") from None
    return lock


def _files(frame: Path) -> list[int]:
    """How many files the Parquet of a frame has, and their size in bytes."""
    sizes = [path.stat().st_size for path in frame.glob("*.parquet")]
    return [len(sizes), sum(sizes)]


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
