"""Recognizes the files of a state in its folder, on any file system, removes old files, and keeps the verdicts of all
audits.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass

from cdc.errors import UserError
from cdc.spark.folders import ASIDE, Entry, Folder

__all__ = ["HISTORY", "LOCK", "POINTER", "PastVerdict", "files", "remembered", "remove_all_but", "require_state_folder"]

POINTER, HISTORY, LOCK = "state.json", "history.jsonl", "lock"
# Includes the parts of earlier formats, to recognize files that a crash of an earlier version of cdc left.
_PARTS = frozenset({"rows", "open", "transit", "transactions", "records", "leader", "follower"})
_GENERATION = re.compile("[1-9][0-9]*")  # a generation's folder
_PARQUET = re.compile(r"part-.*|[._].*")  # in a Parquet folder: data files and files that Spark ignores


def require_state_folder(folder: Folder) -> None:
    """Raises UserError if ``folder`` contains no state, but files that no audit writes."""
    found = folder.entries("")
    if any(entry.name == POINTER for entry in found):
        return
    ours = {LOCK, HISTORY, POINTER + ASIDE, HISTORY + ASIDE}
    for entry in found:
        if entry.name not in ours and not _is_generation(folder, entry):
            raise UserError(
                f"the folder holds other files and no state: {entry.name!r}",
                code="CDC-STATE-NOT-A-STATE",
                where=f"option --state {folder.address}",
                hint="name an empty folder, or one that does not exist yet",
            )


def files(folder: Folder, frame: str) -> list[int]:
    """Returns the number of data files in a Parquet folder, and their size in bytes."""
    sizes = [entry.size for entry in folder.entries(frame) if entry.name.endswith(".parquet")]
    return [len(sizes), sum(sizes)]


def remove_all_but(folder: Folder, parts: Mapping[str, Collection[int]]) -> None:
    """Removes the generations and parts that are not in ``parts``, which maps each part to its generations."""
    for generation in [entry for entry in folder.entries("") if _is_generation(folder, entry)]:
        valid = {name for name, numbers in parts.items() if int(generation.name) in numbers}
        if not valid:
            folder.remove(generation.name)
            continue
        for part in folder.entries(generation.name):
            if part.name not in valid:
                folder.remove(f"{generation.name}/{part.name}")


def _is_generation(folder: Folder, entry: Entry) -> bool:
    """Whether the folder contains nothing but a generation's files, perhaps only the files written before a crash."""
    if not _GENERATION.fullmatch(entry.name) or not entry.is_folder:
        return False
    return all(
        part.name in _PARTS
        and part.is_folder
        and all(_PARQUET.fullmatch(each.name) for each in folder.entries(f"{entry.name}/{part.name}"))
        for part in folder.entries(entry.name)
    )


# Keeps the verdicts of all audits on a state as JSON lines in the state's folder; drops the oldest verdicts.

_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class PastVerdict:
    """The verdict of an audit: its time (``at``, ISO 8601, in UTC), its exit status and its counts."""

    at: str
    exit_status: int
    sequence: int | None
    drifted_rows: int
    schema_drift: int
    accepted: int
    foreign_writes: int


def remembered(folder: Folder, newest: PastVerdict) -> list[PastVerdict]:
    """Adds the ``newest`` verdict to the state in ``folder``; returns all verdicts, oldest first. Raises OSError."""
    known = [*_read(folder.read(HISTORY) or ""), newest][-_KEPT:]
    folder.replace(HISTORY, "".join(f"{json.dumps(asdict(each))}\n" for each in known), private=True)
    return known


def _read(text: str) -> Iterator[PastVerdict]:
    """Parses the lines of ``text`` as verdicts. Ignores damaged lines, which only leave a gap in a plot."""
    for line in text.splitlines():
        try:
            yield PastVerdict(**json.loads(line))
        except (ValueError, TypeError):
            continue
