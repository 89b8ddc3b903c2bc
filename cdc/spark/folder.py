"""The report folder: the names in it, and how it is made ready."""

import shutil
from pathlib import Path

from cdc.errors import UserError

__all__ = ["HTML", "JSON", "PARQUET", "clear"]

JSON, HTML, PARQUET = "report.json", "report.html", "drift.parquet"


def clear(folder: Path) -> None:
    """Make ``folder`` ready: no report of an earlier audit is left to be taken for this one's. Raises UserError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (JSON, HTML):
            (folder / name).unlink(missing_ok=True)
        if (folder / PARQUET).is_dir():
            shutil.rmtree(folder / PARQUET)
    except OSError as error:
        raise UserError(f"cannot write the report: {error}", where=f"option --report {folder}") from None
