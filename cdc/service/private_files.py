"""Writes files and folders that only their owner can read, whatever the umask: they hold rows or passwords.

The module also replaces files as a whole, and flushes files to disk.
"""

import errno
import os
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "FILE",
    "MASK",
    "flush",
    "make_folder",
    "replace_file",
    "take_from_others",
    "tighten",
    "write_lines",
    "write_text",
]

_FOLDER, FILE = 0o700, 0o600
MASK = 0o077  # the umask that leaves others no rights


def make_folder(folder: Path) -> None:
    """Creates ``folder`` for its owner alone (and its parents with the usual mode). An existing folder keeps its mode.
    Raises OSError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=_FOLDER)
        _at_least(folder, _FOLDER)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "is not a directory", str(folder)) from None


def write_text(path: Path, text: str) -> None:
    """Writes ``text`` to the file, replacing its content. Raises OSError."""
    _make_file(path)
    path.write_text(text, encoding="utf-8")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes ``lines`` to the file, replacing its content. Raises OSError."""
    _make_file(path)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _make_file(path: Path) -> None:
    path.touch(mode=FILE)
    take_from_others(path)
    _at_least(path, FILE)


def _at_least(path: Path, mode: int) -> None:
    # The umask may take rights from the owner, too.
    if path.stat().st_mode & mode != mode:
        path.chmod(mode)


def tighten(path: Path) -> None:
    """Removes the rights of others from a file, or a folder and everything in it. Raises OSError without permission."""
    if path.is_symlink():
        return
    # The folder comes first: from then on no other user can reach its content.
    take_from_others(path)
    if path.is_dir():
        for below in path.iterdir():
            tighten(below)


def take_from_others(path: Path) -> None:
    """Removes the rights of others from this file or folder alone. Raises OSError without permission."""
    # The mode is changed only if needed: a mounted folder may be private and refuse chmod.
    mode = path.stat().st_mode & 0o7777
    if mode & MASK:
        path.chmod(mode & ~MASK)


def replace_file(file: Path, text: str, *, private: bool) -> None:
    """Writes the text to a new file, flushes that file, and renames it to ``file``: a crash leaves the old file or the
    new one. Raises OSError.
    """
    aside = file.with_name(f"{file.name}.new")
    if private:
        write_text(aside, text)
    else:
        aside.write_text(text, encoding="utf-8")
    flush(aside)
    aside.replace(file)
    flush(file.parent)


def flush(path: Path) -> None:
    """Flushes a file, or the names in a folder, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
