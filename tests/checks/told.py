"""What an audit tells, in a form in which two audits of the same streams are equal."""

from dataclasses import asdict, replace
from typing import Any

from cdc.spark.compare.row_drift import DriftedRow, in_order
from cdc.spark.compare.tally import Table
from cdc.spark.report.outcome import Audit

__all__ = ["told"]


def told(audit: Audit) -> dict[str, Any]:
    """All that the report has of it, lists of equals in any order; of checksums that they are the same or not.

    The columns of a row are in any order, too: the table's is not known of rows that changed last before a state.
    """
    drifted = [in_order(row, sorted({*row.identity, *row.columns, *_images(row)})) for row in audit.drifted]
    tables = [_with_plain_checksum(each) for each in audit.tables]
    body = asdict(replace(audit, audited_at="", tables=tables, drifted=drifted))
    return {name: sorted(map(repr, each)) if isinstance(each, list) else each for name, each in body.items()}


def _images(row: DriftedRow) -> set[str]:
    return {*(row.leader_image or ()), *(row.follower_image or ())}


def _with_plain_checksum(table: Table) -> Table:
    same = table.leader_checksum == table.follower_checksum
    return replace(table, leader_checksum="one", follower_checksum="one" if same else "another")
