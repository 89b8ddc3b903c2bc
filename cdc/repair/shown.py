"""Shows the drifted rows and definitions of an audit's report, both servers side by side."""

from collections.abc import Iterator
from typing import Any

from cdc.model.values import visible
from cdc.repair.plan import statement_of
from cdc.repair.report import DriftedTable
from cdc.spark.report.printable import cut, differing, value_text

__all__ = ["definition_lines", "row_lines"]

_VALUE_SHOWN = 60
_NO_ROW = "no such row"


def row_lines(table: DriftedTable) -> Iterator[str]:
    """The rows that the report shows, with leader and follower one below the other."""
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
    """Describes an object that is not defined as on the leader, with the correcting statement if it is known."""
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
