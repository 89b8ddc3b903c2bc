"""The files in a state's folder: which of them are a state's, their modes, lock and flushing, removal of the others."""

import fcntl
import os
import re
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO

from cdc.errors import UserError
from cdc.service.private_files import FILE, take_from_others, tighten

__all__ = [
    "ASIDE",
    "HISTORY",
    "POINTER",
    "acquire_lock",
    "files",
    "flush",
    "flush_all",
    "make_private",
    "remove_all_but",
    "require_state_folder",
]

POINTER, HISTORY, _LOCK = "state.json", "history.jsonl", "lock"
ASIDE = f"{POINTER}.new"
# Including those of earlier formats, so that what a crash of an earlier version left is recognized.
_PARTS = frozenset({"rows", "open", "transit", "transactions", "records", "leader", "follower"})
_GENERATION = re.compile("[1-9][0-9]*")  # a generation's folder
_PARQUET = re.compile(r"part-.*|[._].*")  # in a Parquet folder: data files, and those that Spark ignores


def require_state_folder(folder: Path) -> None:
    """Raises UserError where ``folder`` has no state, but files that no audit writes."""
    found = list(folder.iterdir())
    if POINTER in (path.name for path in found):
        return
    for path in found:
        if path.name not in (_LOCK, ASIDE, HISTORY, f"{HISTORY}.new") and not _is_generation(path):
            raise UserError(
                f"the folder holds other files and no state: {path.name!r}",
                where=f"option --state {folder}",
                hint="name an empty folder, or one that does not exist yet",
            )


def make_private(folder: Path, parts: Mapping[str, Collection[int]]) -> None:
    """Make the folder of a state and the state's files in it unreadable for other users.

    Earlier versions created them with the modes of the umask. ``parts`` are the generations of each part.
    """
    generations = {folder / str(number) for numbers in parts.values() for number in numbers}
    for path in (folder / POINTER, folder / _LOCK, *generations):
        if path.exists():
            tighten(path)
    # The folder may be a volume's that belongs to another user; then the modes of its content suffice.
    with suppress(PermissionError):
        take_from_others(folder)


def acquire_lock(folder: Path) -> IO[str]:
    """The lock file of a state, locked until it is closed. Raises UserError where another process holds the lock."""
    # Opened for appending, so that a file of this name that is not ours keeps its content.
    (folder / _LOCK).touch(mode=FILE)
    lock = (folder / _LOCK).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UserError("another audit uses the state", where=f"option --state {folder}") from None
    return lock


def files(frame: Path) -> list[int]:
    """The number of data files in a Parquet folder, and their size in bytes."""
    sizes = [path.stat().st_size for path in frame.glob("*.parquet")]
    return [len(sizes), sum(sizes)]


def flush(path: Path) -> None:
    """Flush a file or a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_all(generation: Path) -> None:
    """Flush to disk all files and folders of a generation, and the entry of its folder."""
    for path in [generation, *sorted(generation.rglob("*")), generation.parent]:
        flush(path)


def remove_all_but(folder: Path, parts: Mapping[str, Collection[int]]) -> None:
    """Remove the generations and parts that are not among ``parts``: by each part's name its generations."""
    for generation in filter(_is_generation, list(folder.iterdir())):
        valid = {name for name, numbers in parts.items() if int(generation.name) in numbers}
        for path in [part for part in generation.iterdir() if part.name not in valid] if valid else [generation]:
            shutil.rmtree(path)


def _is_generation(folder: Path) -> bool:
    """Whether it holds nothing but a generation's files, all of them or those that were written before a crash."""
    if not _GENERATION.fullmatch(folder.name) or not _is_folder(folder):
        return False
    return all(
        part.name in _PARTS and _is_folder(part) and all(_PARQUET.fullmatch(path.name) for path in part.iterdir())
        for part in folder.iterdir()
    )


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
