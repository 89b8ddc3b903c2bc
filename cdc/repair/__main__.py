"""The program cdc-repair: reads from an audit's report which rows have drifted, and requests the leader's producer to
send these rows again.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from cdc.config import profile
from cdc.config.filters import Filters
from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.model.names import folded
from cdc.model.values import visible
from cdc.producer import pipeline
from cdc.producer.binlog.leader import folds_names
from cdc.producer.copy.definition import TableDefinition
from cdc.producer.copy.requests import write_repairs, write_request
from cdc.producer.copy.selection import base_tables, definitions, require_copyable
from cdc.repair.plan import Plan, planned, requests, statement_of
from cdc.repair.report import DriftedTable, Report, read_report
from cdc.service import process
from cdc.service.command_line import add_common_options
from cdc.service.logs import setup_logging
from cdc.spark.report.printable import cut, differing, value_text

__all__ = ["definition_lines", "main", "row_lines"]

_VALUE_SHOWN = 60
_NO_ROW = "no such row"


def row_lines(table: DriftedTable) -> Iterator[str]:
    """Yields lines of text for the drifted rows in the report, with the leader's row above the follower's row."""
    for row in table.shown:
        yield visible(f"  {row['kind']}: {_image(row['identity'])}")
        ours, theirs = row["leader_image"], row["follower_image"]
        if row["kind"] == "different" and ours is not None and theirs is not None:
            ours_shown, theirs_shown = _both(row["columns"], ours, theirs)
        else:
            ours_shown, theirs_shown = (
                _NO_ROW if row["kind"] == lacking else _image(image or row["identity"])
                for image, lacking in ((ours, "extra"), (theirs, "missing"))
            )
        yield visible(f"    leader   {ours_shown}")
        yield visible(f"    follower {theirs_shown}")
    if len(table.shown) < table.drifted:
        yield f"  … {len(table.shown):,} of {table.drifted:,} rows are in report.json, all in drift.parquet"


def definition_lines(drift: dict[str, Any]) -> Iterator[str]:
    """Yields lines about an object whose definition differs from the leader's definition. The lines contain the
    statement that corrects the definition, if it is known.
    """
    name = ".".join(part for part in (drift["database"], drift["name"]) if part)
    yield visible(f"{drift['kind']} {name}: NOT repaired: {drift['cause']}: {drift['evidence']}")
    if (statement := statement_of(drift)) is not None:
        yield visible(f"  to run on the follower, in the database that it means: {statement}")


def _both(columns: list[str], ours: dict[str, str], theirs: dict[str, str]) -> tuple[str, str]:
    sides: tuple[list[str], list[str]] = ([], [])
    for name in columns:
        for side, part in zip(sides, differing(value_text(ours.get(name)), value_text(theirs.get(name))), strict=True):
            side.append(f"{name}={part.before}{part.middle}{part.after}")
    return ", ".join(sides[0]), ", ".join(sides[1])


def _image(values: dict[str, str]) -> str:
    return ", ".join(f"{name}={cut(value_text(text), _VALUE_SHOWN)}" for name, text in values.items())


_EPILOG = """\
The producer that runs reads these rows and writes them into the stream; if none runs, the next one does. Each
follower makes its own rows so. Nothing is written to either server here. Audit again when the follower has got there.

exit status:
  0  all drifted rows are asked for, or none drifted
  1  some of what drifted is not: the output names it
  2  something must be changed first: the report, the profile, a grant
  4  Kafka or the leader can't be reached
"""
_EXAMPLES = """
cdc-repair producer_profile.toml --report report --dry-run
cdc-repair producer_profile.toml --report report
"""


def main() -> int:
    """Runs the program; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="cdc-repair",
        description="Have the rows that cdc-audit found drifted copied again, through the stream.",
        epilog=_EPILOG,
    )
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="TOML file of the leader's cdc-producer")
    parser.add_argument("--report", type=Path, required=True, metavar="DIR", help="folder that cdc-audit wrote")
    parser.add_argument("--dry-run", action="store_true", help="show the rows side by side, and ask for nothing")
    add_common_options(parser, examples=_EXAMPLES)
    arguments = parser.parse_args()
    return process.exit_status(
        lambda: _run(arguments.profile, arguments.report, dry_run=arguments.dry_run), program="cdc-repair"
    )


def _run(path: Path, folder: Path, *, dry_run: bool) -> int:
    settings = profile.load(path, servers=profile.KAFKA_ONLY)
    setup_logging(level=settings.log.level, form=settings.log.format)
    report = read_report(folder, resource=settings.mysql_resource_name, topic=settings.kafka.topic)
    plans = _plans(settings, report)
    asked = [plan for plan in plans if plan.keys or plan.whole]
    if asked and not dry_run:
        _ask(settings, asked)  # the request is sent before anything is printed, because printing may fail
        outcome = 'asked: the producer logs "rows are sent again", the consumer "rows repaired"; then audit again'
    else:
        outcome = "nothing is asked for" if plans or report.schema_drift else "no row drifted"
    status = 1 if len(asked) < len(plans) or report.schema_drift else 0
    lines = chain(_lines(plans, report, dry_run=dry_run), [outcome])
    return process.printed(lines, program="cdc-repair", status=status)


def _lines(plans: Sequence[Plan], report: Report, *, dry_run: bool) -> Iterator[str]:
    for plan in plans:
        yield plan.summary
        if dry_run:
            yield from row_lines(plan.table)
    for drift in report.schema:
        yield from definition_lines(drift)
    if len(report.schema) < report.schema_drift:
        yield f"… {report.schema_drift:,} in all are not defined as on the leader"


def _plans(settings: Profile, report: Report) -> list[Plan]:
    if report.tables:
        settings, report = _as_on_leader(settings, report)
    differently_defined = {(each["database"], each["name"]) for each in report.schema if each["kind"] == "Table"}
    found = _definitions(settings, report.tables) if report.tables else []
    plans = [
        planned(
            table,
            definition,
            differently_defined=differently_defined,
            is_wanted=settings.filters.wants_table(*table.name),
        )
        for table, definition in zip(report.tables, found, strict=True)
    ]
    if any(plan.keys or plan.whole for plan in plans):
        asked = [each for plan, each in zip(plans, found, strict=True) if plan.keys or plan.whole]
        require_copyable(pipeline.find_leader(settings), asked)
    return plans


def _as_on_leader(settings: Profile, report: Report) -> tuple[Profile, Report]:
    """Converts the names in the profile and in the report to the leader's names.

    If the leader stores names in lower case, the names in the profile become lower case. If the audited follower stores
    names in lower case, the names in the report get the leader's spelling.
    """
    database = settings.database
    there = base_tables(database.settings(), str(database), Filters())
    spelled = {(folded(schema), folded(table)): (schema, table) for schema, table in there}
    spelled |= {table: table for table in there}
    tables = [replace(each, name=spelled.get(each.name, each.name)) for each in report.tables]
    schema = []
    for each in report.schema:
        name = each["database"], each["name"]
        names = zip(("database", "name"), spelled.get(name, name), strict=True)
        schema.append(each | dict(names))
    if folds_names(database.settings(), name=str(database)):
        settings = settings.folded()
    return settings, replace(report, tables=tables, schema=schema)


def _definitions(settings: Profile, tables: Sequence[DriftedTable]) -> list[TableDefinition]:
    database = settings.database
    found = definitions(database.settings(), str(database), [table.name for table in tables])
    # The report also contains tables that one side emptied, even if no row drifted. Such a table may exist only on the
    # follower, so its absence on the leader is no error.
    gone = [".".join(of.name) for of, each in zip(tables, found, strict=True) if of.drifted and not each.created]
    if gone:
        raise UserError(
            f"the leader does not have the report's tables any more: {', '.join(gone)}",
            code="CDC-REPORT-TABLES-GONE",
            where=str(database),
            hint="run cdc-audit again, and name its report",
        )
    return found


def _ask(settings: Profile, plans: Sequence[Plan]) -> None:
    keys = [part for plan in plans if plan.keys for part in requests(plan.keys)]
    whole = [plan.table.name for plan in plans if plan.whole]
    if keys:
        write_repairs(settings.kafka, settings.mysql_resource_name, keys)
    if whole:
        write_request(settings.kafka, settings.mysql_resource_name, whole)


if __name__ == "__main__":
    sys.exit(main())
