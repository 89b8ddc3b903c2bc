"""Accesses a folder on this machine, or on a mounted file system."""

import fcntl
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cdc.service.private_files import FILE, flush, make_folder, replace_file, take_from_others, tighten
from cdc.spark.folders.folder import Entry, InUseError

__all__ = ["LocalFolder"]


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """The folder ``path``, an implementation of ``folder.Folder``."""

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
