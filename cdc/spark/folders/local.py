"""A folder on this machine, or mounted."""

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
        """The path."""
        return str(self.path)

    def at(self, name: str) -> str:
        """The path of what is called ``name``."""
        return str(self.path / name)

    def uri(self, name: str) -> str:
        """Unescaped: Hadoop would not decode what Path.as_uri() escapes."""
        return f"file://{(self.path / name).absolute()}"

    def exists(self, name: str) -> bool:
        """Whether it is there."""
        return (self.path / name).exists()

    def read(self, name: str) -> str | None:
        """The text of a file, or None if it does not exist."""
        try:
            return (self.path / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def names(self, name: str) -> list[str]:
        """The names in a folder; empty if it does not exist."""
        return sorted(each.name for each in self.entries(name))

    def entries(self, name: str) -> list[Entry]:
        """What is in a folder; nothing where it is not there. No symbolic link is followed."""
        try:
            found = list((self.path / name).iterdir())
        except FileNotFoundError:
            return []
        return [Entry(each.name, each.is_dir() and not each.is_symlink(), each.lstat().st_size) for each in found]

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
        """Have a folder, all that is in it and its own name on disk."""
        folder = self.path / name
        for each in (folder, *sorted(folder.rglob("*")), folder.parent):
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

    def tighten(self, *names: str) -> None:
        """Remove the rights of others from these files and folders and what is in them, and from the folder itself."""
        for name in names:
            if (self.path / name).exists():
                tighten(self.path / name)
        # The folder may be a volume's that belongs to another user; then the modes of its content suffice.
        with suppress(PermissionError):
            take_from_others(self.path)

    def lock(self, name: str) -> IO[str]:
        """The lock of a file, which the kernel takes back when the process ends. Raises InUseError where another one
        holds it."""
        (self.path / name).touch(mode=FILE)
        lock = (self.path / name).open("a")  # so that a file of this name that is not ours keeps its content
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise InUseError from None
        return lock
