"""Keeps the verdicts of all audits on a state as JSON lines in the state's folder; drops the oldest verdicts."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from cdc.spark.folders.folder import Folder
from cdc.spark.state.folder import HISTORY

__all__ = ["PastVerdict", "remembered"]

_KEPT = 10_000


@dataclass(frozen=True, slots=True)
class PastVerdict:
    """The verdict of an audit: its time (``at``, ISO 8601, in UTC), its exit status and its counts."""

    at: str
    exit_status: int
    sequence: int | None
    drifted_rows: int
    schema_drift: int
    accepted: int
    foreign_writes: int


def remembered(folder: Folder, newest: PastVerdict) -> list[PastVerdict]:
    """Adds the ``newest`` verdict to the state in ``folder``; returns all verdicts, oldest first. Raises OSError."""
    known = [*_read(folder.read(HISTORY) or ""), newest][-_KEPT:]
    folder.replace(HISTORY, "".join(f"{json.dumps(asdict(each))}\n" for each in known), private=True)
    return known


def _read(text: str) -> Iterator[PastVerdict]:
    """Parses the lines of ``text`` as verdicts. Ignores damaged lines, which only leave a gap in a plot."""
    for line in text.splitlines():
        try:
            yield PastVerdict(**json.loads(line))
        except (ValueError, TypeError):
            continue
