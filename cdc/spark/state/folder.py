"""A state's folder, on any file system: what a state needs of it, which files are a state's, removal of others."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from cdc.errors import UserError

__all__ = [
    "ASIDE",
    "HISTORY",
    "LOCK",
    "POINTER",
    "Entry",
    "StateFolder",
    "files",
    "remove_all_but",
    "require_state_folder",
]

POINTER, HISTORY, LOCK = "state.json", "history.jsonl", "lock"
ASIDE = ".new"  # ends the name of a file that will replace another one
# Including those of earlier formats, so that what a crash of an earlier version left is recognized.
_PARTS = frozenset({"rows", "open", "transit", "transactions", "records", "leader", "follower"})
_GENERATION = re.compile("[1-9][0-9]*")  # a generation's folder
_PARQUET = re.compile(r"part-.*|[._].*")  # in a Parquet folder: data files, and those that Spark ignores


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder in a folder; a symbolic link is no folder."""

    name: str
    is_folder: bool
    size: int


class StateFolder(Protocol):
    """The folder and what is below it, by names with slashes, "" being itself. All but ``uri`` may raise OSError."""

    def __str__(self) -> str:
        """The folder as the user knows it."""

    def uri(self, name: str) -> str:
        """What Spark reads and writes."""

    def make(self, name: str = "") -> None:
        """Create the folder for its owner alone, where it is not there."""

    def entries(self, name: str = "") -> list[Entry]:
        """What is in the folder; nothing where it is not there."""

    def text(self, name: str) -> str | None:
        """The content of a file, None where it is not there."""

    def replace(self, name: str, text: str) -> None:
        """Write a file, over what it held. A crash leaves the old content or the new one, and then it stays."""

    def flush(self, name: str) -> None:
        """Make sure that a folder, and all that is in it, outlives a loss of power."""

    def remove(self, name: str) -> None:
        """Remove a folder and all that is in it."""

    def tighten(self, *names: str) -> None:
        """Remove the rights of others from these files and folders and what is in them, those that are there."""

    def lock(self) -> None:
        """Lock the folder for this process until ``close``. Raises UserError where another one holds the lock."""

    def close(self) -> None:
        """Release the lock."""


def require_state_folder(folder: StateFolder) -> None:
    """Raises UserError where ``folder`` has no state, but files that no audit writes."""
    found = folder.entries()
    if any(entry.name == POINTER for entry in found):
        return
    ours = {LOCK, HISTORY, POINTER + ASIDE, HISTORY + ASIDE}
    for entry in found:
        if entry.name not in ours and not _is_generation(folder, entry):
            raise UserError(
                f"the folder holds other files and no state: {entry.name!r}",
                where=f"option --state {folder}",
                hint="name an empty folder, or one that does not exist yet",
            )


def files(folder: StateFolder, frame: str) -> list[int]:
    """The number of data files in a Parquet folder, and their size in bytes."""
    sizes = [entry.size for entry in folder.entries(frame) if entry.name.endswith(".parquet")]
    return [len(sizes), sum(sizes)]


def remove_all_but(folder: StateFolder, parts: Mapping[str, Collection[int]]) -> None:
    """Remove the generations and parts that are not among ``parts``: by each part's name its generations."""
    for generation in [entry for entry in folder.entries() if _is_generation(folder, entry)]:
        valid = {name for name, numbers in parts.items() if int(generation.name) in numbers}
        if not valid:
            folder.remove(generation.name)
            continue
        for part in folder.entries(generation.name):
            if part.name not in valid:
                folder.remove(f"{generation.name}/{part.name}")


def _is_generation(folder: StateFolder, entry: Entry) -> bool:
    """Whether it holds nothing but a generation's files, all of them or those that were written before a crash."""
    if not _GENERATION.fullmatch(entry.name) or not entry.is_folder:
        return False
    return all(
        part.name in _PARTS
        and part.is_folder
        and all(_PARQUET.fullmatch(each.name) for each in folder.entries(f"{entry.name}/{part.name}"))
        for part in folder.entries(entry.name)
    )
