"""Replaces files as a whole, and flushes files to disk."""

import os
from pathlib import Path

from cdc.service.private_files import write_text

__all__ = ["flush", "replace_file"]


def replace_file(file: Path, text: str, *, private: bool) -> None:
    """Write the file aside, flush it, and rename it: a crash leaves the old one or the new one. Raises OSError."""
    aside = file.with_name(f"{file.name}.new")
    if private:
        write_text(aside, text)
    else:
        aside.write_text(text, encoding="utf-8")
    flush(aside)
    aside.replace(file)
    flush(file.parent)


def flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
