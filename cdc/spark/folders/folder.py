"""Defines the operations on a folder with a program's files, for any file system."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["ASIDE", "Entry", "Folder", "InUseError", "Lock"]

ASIDE = ".new"  # the ending of the name of a file that will replace another file


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
