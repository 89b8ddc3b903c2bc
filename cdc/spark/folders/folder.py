"""What a program does with a folder that it keeps, wherever that is."""

from collections.abc import Mapping
from typing import Protocol

__all__ = ["Folder", "InUseError", "Lock"]


class InUseError(Exception):
    """Another process holds the lock."""


class Lock(Protocol):
    """A lock that is held until it is closed, or the process ends."""

    def close(self) -> None: ...


class Folder(Protocol):
    """A folder. Names are below it, with ``/`` between the parts; ``""`` is the folder. All raise OSError."""

    @property
    def address(self) -> str:
        """Of the folder, as Spark takes it."""
        ...

    def at(self, name: str) -> str:
        """The address of what is called ``name``."""
        ...

    def exists(self, name: str) -> bool: ...

    def read(self, name: str) -> str | None:
        """The text of a file, None where it is not there."""
        ...

    def names(self, name: str) -> list[str]:
        """Of what is in a folder; none where it is not there."""
        ...

    def sizes(self, name: str) -> Mapping[str, int]:
        """Of the files in a folder, by name, in bytes; none where it is not there."""
        ...

    def make(self, name: str, *, private: bool = False) -> None:
        """Create a folder and those above; ``private``: for its owner alone. One that is there stays as it is."""
        ...

    def replace(self, name: str, text: str, *, private: bool = False) -> None:
        """Make ``text`` all of a file. A crash leaves the file of before or the new one."""
        ...

    def flush(self, name: str) -> None:
        """Have a folder, the files in it and its own name on disk, where a writer has to see to that."""
        ...

    def move(self, name: str, to: str) -> None:
        """Rename a folder; what is called ``to`` is removed before."""
        ...

    def remove(self, name: str) -> None:
        """Remove a folder with all that is in it."""
        ...

    def lock(self, name: str) -> Lock:
        """The lock of a file, which is created. Raises InUseError where another process holds it."""
        ...
