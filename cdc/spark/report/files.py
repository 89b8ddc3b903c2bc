"""Prepares the report folder, and replaces an earlier report in it once the new report is complete."""

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
ASIDE = ".cdc-audit-next"  # the folder is removed without asking, so no user may have a folder of this name


def repair_command(leader: Path, folder: Path) -> str:
    """Returns the command that requests new copies of the drifted rows in the report in ``folder``; ``leader`` is the
    profile of the leader's producer.
    """
    return shlex.join(["cdc-repair", str(leader.absolute()), "--report", str(folder.absolute())])


def clear(folder: Path) -> None:
    """Creates ``folder``, or removes an earlier report from it, which could be mistaken for the new report. Raises
    UserError."""
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
    """Removes other users' permissions on ``folder``, unless it contains files other than a report."""
    if {path.name for path in folder.iterdir()} <= {JSON, HTML, PARQUET, FOREIGN, KEYS, ASIDE}:
        # The folder may be a volume that belongs to another user; then the modes of its contents suffice.
        with suppress(PermissionError):
            take_from_others(folder)


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yields a folder to write a report to; at the end of the block its files replace the report in ``folder``.

    After the old files are removed and before the new files are moved, readers find no report. If the block fails, the
    new report is removed, and the old report stays.
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
