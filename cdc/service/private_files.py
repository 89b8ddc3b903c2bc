"""Files and folders that only their owner may read, whatever the umask: they hold rows, or a password."""

import errno
from pathlib import Path

__all__ = ["FILE", "MASK", "make_folder", "take_from_others", "tighten", "write_text"]

_FOLDER, FILE = 0o700, 0o600
MASK = 0o077  # the umask that leaves others nothing


def make_folder(folder: Path) -> None:
    """Make ``folder``, and what it is in as ever; one that is there already keeps its mode. Raises OSError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=_FOLDER)
        _at_least(folder, _FOLDER)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "is not a directory", str(folder)) from None


def write_text(path: Path, text: str) -> None:
    """Write ``text`` over what is there. Raises OSError."""
    path.touch(mode=FILE)
    take_from_others(path)
    _at_least(path, FILE)
    path.write_text(text, encoding="utf-8")


def _at_least(path: Path, mode: int) -> None:
    # A umask may take rights from the owner, too.
    if path.stat().st_mode & mode != mode:
        path.chmod(mode)


def tighten(path: Path) -> None:
    """Take a file, or a folder with all in it, away from others. Raises OSError where that is not ours to do."""
    if path.is_symlink():
        return
    # The folder first: from then on nobody else comes to what is in it.
    take_from_others(path)
    if path.is_dir():
        for below in path.iterdir():
            tighten(below)


def take_from_others(path: Path) -> None:
    """Take this file or folder alone away from others. Raises OSError where that is not ours to do."""
    # Asked first, for a mounted folder may be private without taking a mode.
    mode = path.stat().st_mode & 0o7777
    if mode & MASK:
        path.chmod(mode & ~MASK)
