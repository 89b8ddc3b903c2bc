"""Reads the drifted rows from the report of an audit (``cdc-audit --report``), and checks that the report is about this
leader."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cdc.errors import UserError
from cdc.spark.ddl.definitions import EMPTIED
from cdc.spark.report.files import JSON, KEYS

__all__ = ["DriftedTable", "Report", "Table", "read_report"]

Table = tuple[str, str]
_VERSION = 1
_AUDIT_AGAIN = "run cdc-audit again, and name its report"


@dataclass(frozen=True, slots=True)
class DriftedTable:
    """The drifted rows of a table. ``rows`` is the number of all rows of the table on the leader, and ``shown``
    contains some of the drifted rows.

    ``columns`` are the columns of the key. ``keys`` contains the key of each drifted row, with each value as JSON text;
    it is None if the report does not contain all keys. ``accepted`` is the number of further rows that differ; the
    operator has accepted their differences with ``cdc-audit --accept``. ``emptied`` is true if one side emptied the
    table, so that more rows may have drifted than the report contains.
    """

    name: Table
    rows: int
    missing: int
    extra: int
    different: int
    accepted: int = 0
    columns: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] | None = None
    shown: list[dict[str, Any]] = field(default_factory=list)
    emptied: bool = False

    @property
    def drifted(self) -> int:
        """The number of drifted rows."""
        return self.missing + self.extra + self.different


@dataclass(frozen=True, slots=True)
class Report:
    """The content of report.json: the tables that have drifted rows or that one side emptied, and the objects whose
    definitions differ.

    ``schema_drift`` is the number of all such objects; ``schema`` may contain only some of them.
    """

    tables: list[DriftedTable]
    schema: list[dict[str, Any]]
    schema_drift: int


def read_report(folder: Path, *, resource: str, topic: str) -> Report:
    """Reads the report in ``folder``. Raises UserError if the report is missing, contains no verdict, or is about
    another leader.
    """
    where = f"option --report {folder}"
    try:
        body = json.loads((folder / JSON).read_text(encoding="utf-8"))
        if body["version"] != _VERSION:
            raise UserError(
                f"the report is of version {body['version']}, not {_VERSION}", code="CDC-REPORT-UNREADABLE", where=where
            )
        leader, verdict = body["leader"], body["verdict"]
        for key, ours, theirs in (
            ("mysql_resource_name", resource, leader["resource"]),
            ("kafka.topic", topic, leader["topic"]),
        ):
            if ours != theirs:
                what = f"the report is of another leader: its {key} is {theirs}, the profile's {ours}"
                raise UserError(
                    what, code="CDC-REPORT-OTHER-LEADER", where=where, hint="name the profile of the leader's producer"
                )
        if verdict == "could not judge":
            reasons = "; ".join(body["reasons"])
            raise UserError(
                f"the audit could not judge: {reasons}", code="CDC-REPORT-NO-VERDICT", where=where, hint=_AUDIT_AGAIN
            )
        known = _by_table(body["drifted"], _listed(folder))
        tables = [_table(each, known.get((each["database"], each["table"]), []), body) for each in body["tables"]]
        return _report(tables, body["schema"], body["schema_drift"])
    except OSError as error:
        raise UserError(
            f"there is no report: {error.strerror}", code="CDC-REPORT-UNREADABLE", where=f"{where}: {error.filename}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"the file is no report of cdc-audit ({type(error).__name__}: {error})"
        raise UserError(what, code="CDC-REPORT-UNREADABLE", where=where, hint=_AUDIT_AGAIN) from None


def _report(tables: list[DriftedTable], schema: list[dict[str, Any]], schema_drift: int) -> Report:
    """Builds the report. The tables that one side emptied, which ``schema`` lists, are added to ``tables``."""
    emptied = {(each["database"], each["name"]) for each in schema if each["cause"] == EMPTIED}
    known = {each.name: each for each in tables if each.drifted or each.name in emptied}
    known |= {name: DriftedTable(name, 0, 0, 0, 0) for name in sorted(emptied - known.keys())}
    found = [replace(each, emptied=name in emptied) for name, each in known.items()]
    others = [each for each in schema if each["cause"] != EMPTIED]
    return Report(found, others, schema_drift - len(schema) + len(others))


def _listed(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields the keys of the drifted rows from the report's file of keys; yields nothing if that file does not
    exist."""
    if (folder / KEYS).exists():
        with (folder / KEYS).open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def _by_table(shown: list[dict[str, Any]], listed: Iterator[dict[str, Any]]) -> dict[Table, list[dict[str, Any]]]:
    found: dict[Table, list[dict[str, Any]]] = {}
    for each in listed:
        found.setdefault((each["database"], each["table"]), []).append(each)
    some: dict[Table, list[dict[str, Any]]] = {}
    for each in shown:
        some.setdefault((each["database"], each["table"]), []).append(each)
    return some | found


def _table(line: dict[str, Any], known: list[dict[str, Any]], body: dict[str, Any]) -> DriftedTable:
    name = line["database"], line["table"]
    shown = [each for each in body["drifted"] if (each["database"], each["table"]) == name]
    counts = line["missing"], line["extra"], line["different"], line.get("accepted", 0)
    table = DriftedTable(name, line["leader_rows"], *counts, shown=shown)
    columns = tuple(known[0]["identity"]) if known else ()
    # In a table without a key, all columns together identify a row, and several rows may be equal. So its rows are not
    # requested by key.
    keyed = all(each["keyed"] and set(each["identity"]) == set(columns) for each in known)
    keys = dict.fromkeys(tuple(each["identity"][column] for column in columns) for each in known) if keyed else {}
    if len(keys) != table.drifted:
        return table
    return DriftedTable(name, line["leader_rows"], *counts, columns, tuple(keys), shown)
