"""Reads the verdict of the last audit from its report (``cdc-audit --report``)."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cdc.spark.report.files import HTML, JSON
from cdc.web.sources.polled import NoAnswer

__all__ = ["AuditAnswer", "AuditSource", "parsed_report"]


@dataclass(frozen=True, slots=True)
class AuditAnswer:
    """The main figures of report.json, named as in that file; ``page`` is true if report.html exists."""

    verdict: str
    audited_at: str
    leader: str
    follower: str
    sequence: int | None
    tables: int
    drifted_rows: int
    drifted_by_cause: dict[str, int] = field(default_factory=dict)
    schema_drift: int = 0
    foreign_writes: int = 0
    reasons: tuple[str, ...] = ()
    page: bool = False


def parsed_report(body: dict[str, Any], *, page: bool) -> AuditAnswer:
    """Extracts the main figures of a report. If the JSON is not a report, raises LookupError, ValueError, TypeError or
    AttributeError.
    """
    return AuditAnswer(
        verdict=str(body["verdict"]),
        audited_at=str(body["audited_at"]),
        leader=str(body["leader"]["resource"]),
        follower=str(body["follower"]["resource"]),
        sequence=None if body["sequence"] is None else int(body["sequence"]),
        tables=len(body["tables"]),
        drifted_rows=int(body["drifted_rows"]),
        drifted_by_cause={str(cause): int(rows) for cause, rows in body["drifted_by_cause"].items()},
        schema_drift=int(body["schema_drift"]),
        foreign_writes=int(body["foreign_writes"]),
        reasons=tuple(map(str, body["reasons"])),
        page=page,
    )


class AuditSource:
    """Reads the report in ``folder``; reads it again only if it has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_at: tuple[int, int] | None = None
        self._known: AuditAnswer | None = None

    def __call__(self) -> AuditAnswer:
        """Reads the report. Raises NoAnswer if there is none."""
        path = self._folder / JSON
        try:
            stat = path.stat()
            version = stat.st_mtime_ns, stat.st_size
            if self._known is None or version != self._read_at:
                body = json.loads(path.read_text(encoding="utf-8"))
                self._known = parsed_report(body, page=(self._folder / HTML).is_file())
                self._read_at = version
        except FileNotFoundError:
            raise NoAnswer(f"no audit has written its report yet: there is no {path}") from None
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise NoAnswer(f"{path} can't be read as an audit's report: {error}") from None
        return self._known
