"""A state's folder on this machine, or on a file system that it has mounted."""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import IO

from cdc.errors import UserError
from cdc.service.private_files import FILE, make_folder, take_from_others, tighten, write_text
from cdc.spark.state.folder import ASIDE, LOCK, Entry

__all__ = ["LocalFolder"]


class LocalFolder:
    """The folder ``path``, as ``folder.StateFolder`` describes it."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._lock: IO[str] | None = None

    def __str__(self) -> str:
        return str(self._path)

    def uri(self, name: str) -> str:
        """Unescaped: Hadoop would not decode what Path.as_uri() escapes."""
        return f"file://{self._path / name}"

    def make(self, name: str = "") -> None:
        """Its parents as usual."""
        make_folder(self._path / name)

    def entries(self, name: str = "") -> list[Entry]:
        """None of them is followed where it is a symbolic link."""
        try:
            found = list((self._path / name).iterdir())
        except FileNotFoundError:
            return []
        return [Entry(each.name, each.is_dir() and not each.is_symlink(), each.lstat().st_size) for each in found]

    def text(self, name: str) -> str | None:
        """Bytes that are no text are replaced."""
        try:
            return (self._path / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def replace(self, name: str, text: str) -> None:
        """By a rename of a file that is complete and on disk."""
        aside = self._path / f"{name}{ASIDE}"
        write_text(aside, text)
        _flush(aside)
        aside.replace(self._path / name)
        _flush(self._path)

    def flush(self, name: str) -> None:
        """And its entry in the folder above."""
        folder = self._path / name
        for path in [folder, *sorted(folder.rglob("*")), folder.parent]:
            _flush(path)

    def remove(self, name: str) -> None:
        """As rm -r does."""
        shutil.rmtree(self._path / name)

    def tighten(self, *names: str) -> None:
        """The folder itself as well."""
        for name in names:
            if (self._path / name).exists():
                tighten(self._path / name)
        # The folder may be a volume's that belongs to another user; then the modes of its content suffice.
        with suppress(PermissionError):
            take_from_others(self._path)

    def lock(self) -> None:
        """The kernel releases it when the process ends, however that does."""
        # Opened for appending, so that a file of this name that is not ours keeps its content.
        (self._path / LOCK).touch(mode=FILE)
        self._lock = (self._path / LOCK).open("a")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise UserError("another audit uses the state", where=f"option --state {self}") from None

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            self._lock.close()


def _flush(path: Path) -> None:
    """Flush a file or a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
