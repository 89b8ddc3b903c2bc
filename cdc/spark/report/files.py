"""Prepares the report folder, and replaces an earlier report in it by a new one once that is complete."""

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cdc.errors import UserError
from cdc.service.private_files import make_folder, take_from_others

__all__ = ["ASIDE", "FOREIGN", "HTML", "JSON", "KEYS", "PARQUET", "clear", "repair_command", "staged"]

JSON, HTML, KEYS = "report.json", "report.html", "drift.keys.jsonl"
PARQUET, FOREIGN = "drift.parquet", "foreign.parquet"  # folders
ASIDE = ".cdc-audit-next"  # removed without asking, so its name must not be one that users give


def repair_command(leader: Path, folder: Path) -> str:
    """The command that copies the drifted rows of the report in ``folder`` again; ``leader`` is the
    producer's profile."""
    return shlex.join(["cdc-repair", str(leader.absolute()), "--report", str(folder.absolute())])


def clear(folder: Path) -> None:
    """Creates ``folder``, or removes an earlier report from it, which could be mistaken for this
    one. Raises UserError."""
    try:
        make_folder(folder)
        _take_from_others(folder)
        for name in (JSON, HTML, KEYS):
            (folder / name).unlink(missing_ok=True)
        for name in (PARQUET, FOREIGN):
            if (folder / name).is_dir():
                shutil.rmtree(folder / name)
    except OSError as error:
        raise UserError(
            f"cannot write the report: {error}", code="CDC-AUDIT-REPORT", where=f"option --report {folder}"
        ) from None


def _take_from_others(folder: Path) -> None:
    """Removes the rights of other users from ``folder``, unless it holds other files than a report."""
    if {path.name for path in folder.iterdir()} <= {JSON, HTML, PARQUET, FOREIGN, KEYS, ASIDE}:
        # The folder may be a volume's that belongs to another user; then the modes of its content suffice.
        with suppress(PermissionError):
            take_from_others(folder)


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A folder to write a report to; at the end of the block its files replace the report in ``folder``.

    Between removing the old files and moving the new ones, readers find no report. If the block fails, the new report
    is removed and the old one stays.
    """
    aside = folder / ASIDE
    shutil.rmtree(aside, ignore_errors=True)
    make_folder(aside)
    try:
        yield aside
        clear(folder)
        for made in aside.iterdir():
            made.replace(folder / made.name)
    finally:
        shutil.rmtree(aside)
