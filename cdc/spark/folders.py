"""Accesses folders with a program's files, on this machine or on any other file system."""

import fcntl
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from cdc.service.private_files import FILE, flush, make_folder, replace_file, take_from_others, tighten

__all__ = ["ASIDE", "Entry", "Folder", "InUseError", "LocalFolder", "Lock", "as_pattern"]

ASIDE = ".new"  # the ending of the name of a file that will replace another file


_SPECIAL = re.compile(r"[\\\[\]{}*?]")


def as_pattern(address: str) -> str:
    """Escapes an address that Spark is to read: it takes each for a glob pattern, and may find another folder."""
    return _SPECIAL.sub(r"\\\g<0>", address)


class InUseError(Exception):
    """Raised if another process holds the lock. The text of the exception, if any, describes when the lock expires if
    that process was killed.
    """


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of ``size`` bytes, or a folder; a symbolic link is not a folder."""

    name: str
    is_folder: bool
    size: int


class Lock(Protocol):
    """A lock that is held until it is closed, or the process ends."""

    def close(self) -> None: ...


class Folder(Protocol):
    """A folder. Methods take names relative to the folder, with ``/`` between the parts of a name; ``""`` is the folder
    itself. All methods raise OSError.
    """

    @property
    def address(self) -> str:
        """The address of the folder, as the user gave it."""
        ...

    def at(self, name: str) -> str:
        """Returns the address of the file or folder ``name``."""
        ...

    def uri(self, name: str) -> str:
        """Returns the address of ``name`` with its scheme, so that it does not depend on Spark's default file
        system.
        """
        ...

    def exists(self, name: str) -> bool: ...

    def read(self, name: str) -> str | None:
        """Returns the text of a file, or None if it does not exist. Bytes that are not UTF-8 are replaced."""
        ...

    def names(self, name: str) -> list[str]:
        """Returns the names of the entries in a folder; empty if the folder does not exist."""
        ...

    def entries(self, name: str) -> list[Entry]:
        """Returns the entries of a folder; empty if the folder does not exist."""
        ...

    def make(self, name: str, *, private: bool = False) -> None:
        """Creates a folder and its parents; if ``private`` is true, only the owner may read the folder. An existing
        folder is not changed."""
        ...

    def replace(self, name: str, text: str, *, private: bool = False) -> None:
        """Replaces the contents of a file with ``text``. A crash leaves either the old or the new contents."""
        ...

    def flush(self, name: str) -> None:
        """Writes a folder, its contents and its entry in the parent folder to disk, if the file system does not do so
        by itself.
        """
        ...

    def move(self, name: str, to: str) -> None:
        """Renames the folder ``name`` to ``to``; an existing folder ``to`` is removed first."""
        ...

    def remove(self, name: str) -> None:
        """Removes a folder with its contents."""
        ...

    def tighten(self, *names: str) -> None:
        """Removes other users' permissions on the files and folders ``names``, their contents, and this folder."""
        ...

    def lock(self, name: str) -> Lock:
        """Locks a file, and creates it if needed. Raises InUseError if another process holds the lock."""
        ...


# Accesses a folder on this machine, or on a mounted file system.


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """The folder ``path``, an implementation of ``folders.Folder``."""

    path: Path

    @property
    def address(self) -> str:
        """The folder's path."""
        return str(self.path)

    def at(self, name: str) -> str:
        """Returns the path of the file or folder ``name``."""
        return str(self.path / name)

    def uri(self, name: str) -> str:
        """Returns the URI of ``name``, unescaped: Hadoop would not decode the escapes of Path.as_uri()."""
        return f"file://{(self.path / name).absolute()}"

    def exists(self, name: str) -> bool:
        """Whether the file or folder exists."""
        return (self.path / name).exists()

    def read(self, name: str) -> str | None:
        """Returns the text of a file, or None if it does not exist."""
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def names(self, name: str) -> list[str]:
        """Returns the names of the entries in a folder; empty if the folder does not exist."""
        return sorted(each.name for each in self.entries(name))

    def entries(self, name: str) -> list[Entry]:
        """Returns the entries of a folder; empty if the folder does not exist. Symbolic links are not followed."""
        try:
            found = list((self.path / name).iterdir())
        except FileNotFoundError:
            return []
        return [Entry(each.name, each.is_dir() and not each.is_symlink(), each.lstat().st_size) for each in found]

    def make(self, name: str, *, private: bool = False) -> None:
        """Creates a folder and its parents; if ``private`` is true, only the owner may read the folder."""
        if private:
            make_folder(self.path / name)
        else:
            (self.path / name).mkdir(parents=True, exist_ok=True)

    def replace(self, name: str, text: str, *, private: bool = False) -> None:
        """Replaces the contents of a file with ``text``, through a rename."""
        replace_file(self.path / name, text, private=private)

    def flush(self, name: str) -> None:
        """Flushes a folder, its contents and its entry in the parent folder to disk."""
        folder = self.path / name
        for each in (folder, *sorted(folder.rglob("*")), folder.parent):
            flush(each)

    def move(self, name: str, to: str) -> None:
        """Renames the folder ``name`` to ``to``; an existing folder ``to`` is removed first."""
        target = self.path / to
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            shutil.rmtree(target)
        (self.path / name).rename(target)

    def remove(self, name: str) -> None:
        """Removes a folder with its contents."""
        shutil.rmtree(self.path / name)

    def tighten(self, *names: str) -> None:
        """Removes other users' permissions on the files and folders ``names``, their contents, and this folder."""
        for name in names:
            if (self.path / name).exists():
                tighten(self.path / name)
        # The folder may be a volume that belongs to another user; then the modes of its contents suffice.
        with suppress(PermissionError):
            take_from_others(self.path)

    def lock(self, name: str) -> IO[str]:
        """Locks a file. The lock ends when it is closed, at the latest when the process ends. Raises InUseError if
        another process holds the lock.
        """
        (self.path / name).touch(mode=FILE)
        lock = (self.path / name).open("a")  # appending keeps the contents of a foreign file of this name
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise InUseError from None
        return lock
