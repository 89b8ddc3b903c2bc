"""Loads the state that earlier audits saved in the ``--state`` folder, and saves the results of an audit in it.

The data about covered records that later audits need (``state.coverage``) is saved as Parquet files. Each audit adds a
**generation**, which consists of **parts**:

    1/rows          a layer (``state.coverage``) of both sides' rows, one line for each row's identity
    1/open          the hashes of the rows that a report lists one by one; the newest generation replaces earlier ones
    1/transit       how long transactions took (``spark.lag``); the newest generation replaces earlier ones
    1/transactions  the transactions (``streams.transactions``) that this generation was the first to cover
    1/records       some records of these transactions: the statements, the chunks of table copies without their rows,
                    the rows of the consumer's notes, and the records whose position in Kafka a report contains
    history.jsonl   the verdicts (``state.folder``), which no audit needs
    state.json      the valid generations of each part and the sizes of their files; the topics, renames and filters of
                    the state; the places at which the next audit continues to read; the contents of the topics; and the
                    last verdict

Invariant: a new generation is first written and flushed to disk completely. Then one rename replaces ``state.json`` by
a file that lists the new generation. So a crash leaves either the old state or the new state. The next audit removes
generations that ``state.json`` does not list. A folder that contains other files but no ``state.json`` is refused
before anything is written to the folder.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from cdc.errors import UserError
from cdc.model.position import partition_of
from cdc.model.read_record import ReadRecord
from cdc.spark.folders import Folder, InUseError, Lock
from cdc.spark.hadoop_folder import folder_at
from cdc.spark.input.small_data import local_frame
from cdc.spark.state.coverage import (
    PAGES,
    START_OVER,
    Covered,
    Held,
    arrivals_after,
    contents_from_json,
    contents_to_json,
    ids_after,
    offsets_after,
    parse_pointer,
    verdict_from_json,
    verdict_to_json,
)  # fmt: skip
from cdc.spark.state.folder import LOCK, POINTER, PastVerdict, remembered, remove_all_but, require_state_folder
from cdc.spark.state.parquet_parts import ParquetParts, part_key, write
from cdc.spark.streams.transactions import ids_from_json, ids_to_json

__all__ = ["StateStore"]


class StateStore:
    """The state in one folder, locked for this process until ``close``."""

    def __init__(self, spark: SparkSession, folder: Folder, identity: Mapping[str, Any], lock: Lock) -> None:
        self._folder, self._identity, self._lock = folder, identity, lock
        self._parts = ParquetParts(spark, folder)

    @classmethod
    def open(cls, spark: SparkSession, folder: Path | str | Folder, identity: Mapping[str, Any]) -> Self:
        """Opens the state in ``folder``, a path or a URI; creates the folder if it does not exist.

        ``identity`` contains the topics, renames and filters with which the state must have been saved. Raises
        UserError if the state was saved with other topics, renames or filters, is damaged, or is in use, or if the
        folder contains other files but no state.
        """
        try:
            found = folder_at(spark, folder)
            found.make("", private=True)
            require_state_folder(found)
            state = cls(spark, found, identity, found.lock(LOCK))
        except InUseError as told:
            where, hint = f"option --state {folder}", f"wait until it has ended; {told}".rstrip("; ")
            raise UserError("another audit uses the state", code="CDC-STATE-IN-USE", where=where, hint=hint) from None
        except OSError as error:
            raise UserError(
                f"cannot use the state folder: {error}", code="CDC-STATE-FOLDER", where=f"option --state {folder}"
            ) from None
        try:
            state._parts = replace(state._parts, pointer=state._read())
            state._remove_unnamed()
            found.tighten(
                POINTER, LOCK, *{str(each) for numbers in state._parts.generations.values() for each in numbers}
            )
        except BaseException:
            state.close()
            raise
        return state

    def remembered(self, verdict: PastVerdict) -> list[PastVerdict]:
        """Adds ``verdict`` to the verdicts of the audits on this state, and returns all these verdicts, oldest first.
        Raises OSError.
        """
        return remembered(self._folder, verdict)

    def close(self) -> None:
        """Releases the lock, so that another process can use the state."""
        self._lock.close()

    def load(self, topics: Mapping[str, Mapping[str, str]]) -> Held | None:
        """Loads the state; None if no state was saved yet. ``topics`` are the topics' present ids in Kafka, by side.

        Raises UserError if a topic's id is not the same as when the state was saved, or if files were changed since.
        """
        pointer = self._parts.pointer
        if pointer is None:
            return None
        self._require_same_topics(pointer["topics"], topics)
        frames = {name: self._parts.frame(name) for name in pointer["parts"]}
        self._parts.require_all_transactions(frames["transactions"], where=self._where())
        return Held(
            next=pointer["next"],
            offsets={
                side: {partition_of(name): at for name, at in offsets.items()}
                for side, offsets in pointer["offsets"].items()
            },
            arrivals=pointer["arrivals"],
            contents={side: contents_from_json(body) for side, body in pointer["contents"].items()},
            layers=frames["rows"],
            rows=pointer["rows"],
            above=pointer["above"],
            open=frames.get("open", local_frame(self._parts.spark, [], "hash BIGINT")),
            opened=pointer["opened"],
            **verdict_from_json(pointer["verdict"], frames.get("transit")),
            transactions=frames["transactions"],
            records=frames["records"],
            kept=self._parts.lines("records"),
            ids=ids_from_json(pointer.get("ids")),
            read={
                side: {name: tuple(ReadRecord(*each) for each in records) for name, records in of_side.items()}
                for side, of_side in pointer.get("read", {}).items()  # earlier versions of cdc kept none
            },
        )

    def save(self, held: Held | None, covered: Covered, topics: Mapping[str, Mapping[str, str]]) -> None:
        """Saves the part of the topics that this audit ``covered`` beyond ``held`` as a new generation.

        If that fails, the state is unchanged. ``topics`` are the topics' ids in Kafka, by side. Raises UserError,
        OSError and Spark's exceptions.
        """
        if held is not None and all(held.next[side] == end + 1 for side, end in covered.ends.items()):
            return
        # Without a lock, or if another process took the lock while this process was suspended, another process may have
        # written the generations in the folder.
        if self._read() != self._parts.pointer:
            raise UserError(
                "another audit saved the state since this one read it",
                code="CDC-STATE-OVERTAKEN",
                where=self._where(),
                hint="let only one audit at a time use the state, then start this audit again",
            )
        # The folder may contain a generation with the new number, if an earlier attempt to remove it failed.
        self._remove_unnamed()
        try:
            self._save(held, covered, topics)
        except Exception:
            # The new generation is removed: it may have filled the disk on which the report is written next.
            self._remove_unnamed()
            raise
        self._remove_unnamed()

    def _save(self, held: Held | None, covered: Covered, topics: Mapping[str, Mapping[str, str]]) -> None:
        before = self._parts.generations
        number = max((each for numbers in before.values() for each in numbers), default=0) + 1
        new = self._parts.new_parts(held, covered, number)
        self._folder.make(str(number), private=True)
        counts = {
            part_key(number, name): write(
                frame,
                self._folder,
                part_key(number, name),
                option="option --state",
                pages=PAGES if name == "rows" else {},
            )
            for name, (_, frame) in new.items()
        }
        parts = {name: [*before.get(name, [])[:remaining], number] for name, (remaining, _) in new.items()}
        below = held if covered.touched else None
        known = {**self._parts.counts(parts), **counts}
        # An upper bound for the rows of a layer that an earlier version of cdc did not count.
        most = below.above if below else 0
        offsets, read = offsets_after(covered, held)
        self._point_to(number, {
            **self._identity,
            "parts": parts,
            "schemas": {name: frame.schema.jsonValue() for name, (_, frame) in new.items()},
            "files": self._parts.files(parts),
            "counts": known,
            "rows": below.rows if below else counts[part_key(number, "rows")],
            "above": sum(known.get(part_key(each, "rows"), most) for each in parts["rows"][1:]),
            "opened": counts.get(part_key(number, "open"), 0),
            "next": {side: end + 1 for side, end in covered.ends.items()},
            "offsets": offsets,
            "read": read,
            "arrivals": arrivals_after(covered, held),
            "contents": contents_to_json(covered),
            "ids": ids_to_json(ids_after(covered, held)),
            "topics": topics,
            "verdict": verdict_to_json(covered),
        })  # fmt: skip

    def _require_same_topics(
        self, saved: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
    ) -> None:
        for side, ids in saved.items():
            for topic, number in ids.items():
                if now[side].get(topic) != number:
                    raise UserError(
                        f"topic {topic} of the {side} was deleted and created again since the state was saved",
                        code="CDC-STATE-OTHER-TOPIC",
                        where=self._where(),
                        hint=START_OVER,
                    )

    def _read(self) -> dict[str, Any] | None:
        """Returns the content of state.json; None if the file does not exist. Raises UserError."""
        try:
            text = self._folder.read(POINTER)
        except OSError as error:
            raise UserError(
                f"cannot read the state: {error!r}", code="CDC-STATE-DAMAGED", where=self._where(), hint=START_OVER
            ) from None
        return None if text is None else parse_pointer(text, self._identity, where=self._where())

    def _point_to(self, generation: int, pointer: dict[str, Any]) -> None:
        """Makes the new ``generation`` valid: flushes all of it to disk, then replaces state.json by ``pointer``, which
        lists it."""
        self._folder.flush(str(generation))
        try:
            self._folder.replace(POINTER, json.dumps(pointer, indent=1, sort_keys=True) + "\n", private=True)
        finally:
            # If flushing the folder failed, the rename may have made the generation valid nevertheless: so state.json
            # is read again.
            self._parts = replace(self._parts, pointer=self._read())

    def _remove_unnamed(self) -> None:
        """Removes the generations and parts that state.json does not list."""
        remove_all_but(self._folder, self._parts.generations)

    def _where(self) -> str:
        return f"option --state {self._folder.address}"
