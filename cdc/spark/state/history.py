"""The verdicts of the audits on a state, as JSON lines in its folder: appended by each audit, the oldest dropped."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from cdc.spark.folders.folder import Folder
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


def remembered(folder: Folder, newest: PastVerdict) -> list[PastVerdict]:
    """The verdicts of the state in ``folder``, oldest first, with the ``newest``, which is added. Raises OSError."""
    known = [*_read(folder.read(HISTORY) or ""), newest][-_KEPT:]
    folder.replace(HISTORY, "".join(f"{json.dumps(asdict(each))}\n" for each in known), private=True)
    return known


def _read(text: str) -> Iterator[PastVerdict]:
    """The verdicts in the lines of a text, without lines that are none, which would only leave a gap in a plot."""
    for line in text.splitlines():
        try:
            yield PastVerdict(**json.loads(line))
        except (ValueError, TypeError):
            continue
