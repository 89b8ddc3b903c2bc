"""The folder of a state: Parquet by generation and part, and which of it counts; what does not is removed."""

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

__all__ = ["ASIDE", "POINTER", "files", "flush", "flush_all", "locked", "remove_all_but", "require_ours", "tightened"]

POINTER, _LOCK = "state.json", "lock"
ASIDE = f"{POINTER}.new"
# Those of earlier formats, too: what a crash left of one is nobody's own.
_PARTS = frozenset({"rows", "open", "transit", "transactions", "records", "leader", "follower"})
_GENERATION = re.compile("[1-9][0-9]*")  # its name
_PARQUET = re.compile(r"part-.*|[._].*")  # of a Parquet folder: its data, and what Spark calls hidden


def require_ours(folder: Path) -> None:
    """Raises UserError where a folder without a state has what no audit put there."""
    found = list(folder.iterdir())
    if POINTER in (path.name for path in found):
        return
    for path in found:
        if path.name not in (_LOCK, ASIDE) and not _is_generation(path):
            raise UserError(
                f"the folder is not one of a state: it has {path.name!r} in it",
                where=f"option --state {folder}",
                hint="name an empty folder, or one that is not there yet",
            )


def tightened(folder: Path, parts: Mapping[str, Collection[int]]) -> None:
    """Tighten the folder of a state and, of what is in it, what is ours: earlier versions left it to the umask."""
    generations = {folder / str(number) for numbers in parts.values() for number in numbers}
    for path in (folder / POINTER, folder / _LOCK, *generations):
        if path.exists():
            tighten(path)
    # Of a volume it may be another's; then what is in it keeps them out.
    with suppress(PermissionError):
        take_from_others(folder)


def locked(folder: Path) -> IO[str]:
    # Not "w": whatever has the name of our lock keeps what is in it.
    (folder / _LOCK).touch(mode=FILE)
    lock = (folder / _LOCK).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise UserError("another audit uses the state", where=f"option --state {folder}") from None
    return lock


def files(frame: Path) -> list[int]:
    """How many files the Parquet of a frame has, and their size in bytes."""
    sizes = [path.stat().st_size for path in frame.glob("*.parquet")]
    return [len(sizes), sum(sizes)]


def flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_all(generation: Path) -> None:
    """Flush all files and folders of a generation, and that it is there, to disk."""
    for path in [generation, *sorted(generation.rglob("*")), generation.parent]:
        flush(path)


def remove_all_but(folder: Path, parts: Mapping[str, Collection[int]]) -> None:
    """Remove the generations, and of those the parts, that are not among ``parts``: by name, their generations."""
    for generation in filter(_is_generation, list(folder.iterdir())):
        kept = {name for name, numbers in parts.items() if int(generation.name) in numbers}
        for path in [part for part in generation.iterdir() if part.name not in kept] if kept else [generation]:
            shutil.rmtree(path)


def _is_generation(folder: Path) -> bool:
    """Whether it holds nothing but what a state keeps, or as much of it as a crash left."""
    if not _GENERATION.fullmatch(folder.name) or not _is_folder(folder):
        return False
    return all(
        part.name in _PARTS and _is_folder(part) and all(_PARQUET.fullmatch(path.name) for path in part.iterdir())
        for part in folder.iterdir()
    )


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
