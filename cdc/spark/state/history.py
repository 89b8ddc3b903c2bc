"""The verdicts of the audits on a state, as JSON lines in its folder: appended by each audit, the oldest dropped."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from cdc.service.private_files import write_lines
from cdc.spark.state.folder import HISTORY

__all__ = ["PastVerdict", "remembered"]

_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class PastVerdict:
    """An audit's exit status and counts, of which a report of its time has more. ``at`` is ISO 8601, in UTC."""

    at: str
    exit_status: int
    sequence: int | None
    drifted_rows: int
    schema_drift: int
    accepted: int
    foreign_writes: int


def remembered(folder: Path, newest: PastVerdict) -> list[PastVerdict]:
    """The verdicts of the state in ``folder``, oldest first, with the ``newest``, which is added. Raises OSError."""
    path = folder / HISTORY
    known = [*(_read(path) if path.exists() else ()), newest][-_KEPT:]
    # Written aside: a crash leaves the old file.
    aside = folder / f"{HISTORY}.new"
    write_lines(aside, (json.dumps(asdict(each)) for each in known))
    aside.replace(path)
    return known


def _read(path: Path) -> Iterator[PastVerdict]:
    """The verdicts in a file, without lines that are none, which would only leave a gap in a plot."""
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            yield PastVerdict(**json.loads(line))
        except (ValueError, TypeError):
            continue
