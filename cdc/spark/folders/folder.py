"""What a program does with a folder that it keeps, wherever that is."""

from dataclasses import dataclass
from typing import Protocol

__all__ = ["ASIDE", "Entry", "Folder", "InUseError", "Lock"]

ASIDE = ".new"  # ends the name of a file that will replace another one


class InUseError(Exception):
    """Another process holds the lock. The text, if any, describes when the lock ends if that process was killed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, of ``size`` bytes, or a folder in a folder; a symbolic link is no folder."""

    name: str
    is_folder: bool
    size: int


class Lock(Protocol):
    """A lock that is held until it is closed, or the process ends."""

    def close(self) -> None: ...


class Folder(Protocol):
    """A folder. Names are below it, with ``/`` between the parts; ``""`` is the folder. All raise OSError."""

    @property
    def address(self) -> str:
        """The address of the folder, as the user gave it."""
        ...

    def at(self, name: str) -> str:
        """The address of what is called ``name``."""
        ...

    def uri(self, name: str) -> str:
        """The same with the scheme, whatever Spark's default is."""
        ...

    def exists(self, name: str) -> bool: ...

    def read(self, name: str) -> str | None:
        """The text of a file, or None if it does not exist. Bytes that are not UTF-8 are replaced."""
        ...

    def names(self, name: str) -> list[str]:
        """The names in a folder; empty if it does not exist."""
        ...

    def entries(self, name: str) -> list[Entry]:
        """What is in a folder; nothing where it is not there."""
        ...

    def make(self, name: str, *, private: bool = False) -> None:
        """Create a folder and those above; ``private``: for its owner alone. One that is there stays as it is."""
        ...

    def replace(self, name: str, text: str, *, private: bool = False) -> None:
        """Make ``text`` all of a file. A crash leaves the file of before or the new one."""
        ...

    def flush(self, name: str) -> None:
        """Have a folder, all that is in it and its own name on disk, where a writer has to see to that."""
        ...

    def move(self, name: str, to: str) -> None:
        """Rename a folder; what is called ``to`` is removed before."""
        ...

    def remove(self, name: str) -> None:
        """Remove a folder with all that is in it."""
        ...

    def tighten(self, *names: str) -> None:
        """Remove the rights of others from these files and folders and what is in them, and from the folder itself."""
        ...

    def lock(self, name: str) -> Lock:
        """The lock of a file, which is created. Raises InUseError where another process holds it."""
        ...
