"""A folder on this machine, or mounted."""

import fcntl
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cdc.service.durable_files import flush, replace_file
from cdc.service.private_files import make_folder
from cdc.spark.folders.folder import InUseError

__all__ = ["LocalFolder"]


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """The folder ``path``, as ``folder.Folder`` says."""

    path: Path

    @property
    def address(self) -> str:
        """The path."""
        return str(self.path)

    def at(self, name: str) -> str:
        """The path of what is called ``name``."""
        return str(self.path / name)

    def exists(self, name: str) -> bool:
        """Whether it is there."""
        return (self.path / name).exists()

    def read(self, name: str) -> str | None:
        """The text of a file, None where it is not there."""
        try:
            return (self.path / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None

    def names(self, name: str) -> list[str]:
        """Of what is in a folder; none where it is not there."""
        folder = self.path / name
        return sorted(each.name for each in folder.iterdir()) if folder.exists() else []

    def sizes(self, name: str) -> dict[str, int]:
        """Of the files in a folder, by name, in bytes; none where it is not there."""
        folder = self.path / name
        if not folder.exists():
            return {}
        return {each.name: each.stat().st_size for each in sorted(folder.iterdir()) if each.is_file()}

    def make(self, name: str, *, private: bool = False) -> None:
        """Create a folder and those above; ``private``: for its owner alone."""
        if private:
            make_folder(self.path / name)
        else:
            (self.path / name).mkdir(parents=True, exist_ok=True)

    def replace(self, name: str, text: str, *, private: bool = False) -> None:
        """Make ``text`` all of a file, by a rename."""
        replace_file(self.path / name, text, private=private)

    def flush(self, name: str) -> None:
        """Have a folder, the files in it and its own name on disk."""
        folder = self.path / name
        for each in (*folder.iterdir(), folder, folder.parent):
            flush(each)

    def move(self, name: str, to: str) -> None:
        """Rename a folder; what is called ``to`` is removed before."""
        target = self.path / to
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            shutil.rmtree(target)
        (self.path / name).rename(target)

    def remove(self, name: str) -> None:
        """Remove a folder with all that is in it."""
        shutil.rmtree(self.path / name)

    def lock(self, name: str) -> IO[str]:
        """The lock of a file. Raises InUseError where another process holds it."""
        lock = (self.path / name).open("a")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise InUseError from None
        return lock
