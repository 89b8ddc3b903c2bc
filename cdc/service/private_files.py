"""Writes files and folders that only their owner can read, whatever the umask is, because they contain rows or
passwords.

The module also replaces whole files, and flushes files to disk.
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
MASK = 0o077  # this umask leaves no rights to other users


def make_folder(folder: Path) -> None:
    """Creates ``folder`` with access for its owner alone; its parents are created with the usual mode. An existing
    folder keeps its mode. Raises OSError.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=_FOLDER)
        _at_least(folder, _FOLDER)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "is not a directory", str(folder)) from None


def write_text(path: Path, text: str) -> None:
    """Replaces the content of the file by ``text``. Raises OSError."""
    _make_file(path)
    path.write_text(text, encoding="utf-8")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Replaces the content of the file by ``lines``. Raises OSError."""
    _make_file(path)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


def _make_file(path: Path) -> None:
    path.touch(mode=FILE)
    take_from_others(path)
    _at_least(path, FILE)


def _at_least(path: Path, mode: int) -> None:
    # The umask may have removed rights of the owner, too.
    if path.stat().st_mode & mode != mode:
        path.chmod(mode)


def tighten(path: Path) -> None:
    """Removes the rights of other users from a file, or from a folder and everything in it. Raises OSError if that is
    not permitted."""
    if path.is_symlink():
        return
    # The folder comes first, since from then on no other user can reach its content.
    take_from_others(path)
    if path.is_dir():
        for below in path.iterdir():
            tighten(below)


def take_from_others(path: Path) -> None:
    """Removes the rights of other users from this file or folder, but not from a folder's content. Raises OSError if
    that is not permitted."""
    # The mode is changed only if that is needed: a mounted folder may be private already and refuse chmod.
    mode = path.stat().st_mode & 0o7777
    if mode & MASK:
        path.chmod(mode & ~MASK)


def replace_file(file: Path, text: str, *, private: bool) -> None:
    """Writes the text to a new file, flushes that file, and renames it to ``file``. After a crash ``file`` is either
    the old file or the new one. Raises OSError.
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
    """Flushes the content of a file, or the list of names in a folder, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
