"""What an audit tells, in a form in which two audits of the same streams are equal."""

from dataclasses import asdict, replace
from typing import Any

from cdc.spark.compare.row_drift import in_order
from cdc.spark.compare.tally import Table
from cdc.spark.report.outcome import Audit

__all__ = ["told"]


def told(audit: Audit, *, ordered: bool = True) -> dict[str, Any]:
    """All that the report has of it, lists of equals in any order; of checksums that they are the same or not.

    Not ``ordered``: a row's columns may be in any order, since an audit on from a state does not know that of the table
    for rows that changed last before the state.
    """
    drifted = audit.drifted if ordered else [in_order(row, ()) for row in audit.drifted]
    tables = [_with_plain_checksum(each) for each in audit.tables]
    body = asdict(replace(audit, audited_at="", tables=tables, drifted=drifted))
    return {name: sorted(map(repr, each)) if isinstance(each, list) else each for name, each in body.items()}


def _with_plain_checksum(table: Table) -> Table:
    same = table.leader_checksum == table.follower_checksum
    return replace(table, leader_checksum="one", follower_checksum="one" if same else "another")
