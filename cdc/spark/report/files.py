"""The report folder: the names in it, and how it is made ready."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cdc.errors import UserError
from cdc.service.private_files import make_folder, take_from_others

__all__ = ["ASIDE", "HTML", "JSON", "PARQUET", "clear", "staged"]

JSON, HTML, PARQUET = "report.json", "report.html", "drift.parquet"
ASIDE = ".cdc-audit-next"  # removed unasked, so it has a name that nobody else gives


def clear(folder: Path) -> None:
    """Make ``folder`` ready: no report of an earlier audit is left to be taken for this one's. Raises UserError."""
    try:
        make_folder(folder)
        _take_from_others(folder)
        for name in (JSON, HTML):
            (folder / name).unlink(missing_ok=True)
        if (folder / PARQUET).is_dir():
            shutil.rmtree(folder / PARQUET)
    except OSError as error:
        raise UserError(f"cannot write the report: {error}", where=f"option --report {folder}") from None


def _take_from_others(folder: Path) -> None:
    """A folder that has nothing but a report in it is ours; with other things in it, the mode is for others to say."""
    if {path.name for path in folder.iterdir()} <= {JSON, HTML, PARQUET, ASIDE}:
        # Of a volume it may be another's; then the modes of what is in it keep others out.
        with suppress(PermissionError):
            take_from_others(folder)


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A folder to write a report to, which then takes the place of the one in ``folder``: readers miss it but a moment.

    Of a report that fails half-way nothing is left.
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
