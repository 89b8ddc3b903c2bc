"""Checks at each start whether columns of the leader's tables can be masked, and rows of them left out, as in the
profile; warns of globs that match nothing, and of changes that the filters hide.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from cdc.config.profile import Profile
from cdc.config.table_globs import named
from cdc.errors import UserError
from cdc.model.commit_entry import Entry
from cdc.model.server_version import logs_cascades
from cdc.producer import table_checks
from cdc.producer.binlog.leader import Leader, connected_cursor
from cdc.producer.copy.row_selection import RowSelection
from cdc.producer.copy.selection import base_tables, definitions
from cdc.producer.copy.state import Pending
from cdc.producer.table_checks import changed_silently, check_masks

__all__ = ["former_filters", "of_leader", "require_masks", "require_row_filters", "warn_of_cascades"]


def of_leader(profile: Profile, leader: Leader) -> dict[str, Any]:
    """Returns the arguments for a connection to the server whose binlog is read. Connecting fails if another server has
    this address by now.
    """
    return profile.database.settings() | {"server_id": leader.server_id}


def require_masks(profile: Profile, leader: Leader, *, log: Callable[..., None]) -> None:
    """Raises UserError if columns of the leader's tables can't be masked as in the profile. Logs the masked columns,
    and a warning for globs that match no column: if a name is misspelt, its column is not masked.
    """
    masks = profile.filters.mask_columns
    if masks and leader.session is not None:
        raise UserError(
            "columns of a MariaDB leader can't be masked",
            code="CDC-MASK-UNFIT",
            where="profile key filters.mask_columns",
            hint="leave the tables out with filters.exclude_tables, and mask_columns with them",
        )
    unused = check_masks(profile.database.settings(), profile.filters, name=leader.name)
    if masks:
        log("columns are masked", columns=", ".join(masks))
    if unused:
        log("no column is masked by these globs", level=logging.WARNING, columns=", ".join(unused))


def require_row_filters(profile: Profile, leader: Leader, *, newest: Entry | None, log: Callable[..., None]) -> None:
    """Raises UserError if rows of the leader's tables can't be left out as in the profile. If the filters of rows are
    those of the entry ``newest``, logs a warning instead: the leader's table may have been altered after that entry.

    Logs the tables of which rows are left out, and warnings for globs that match no table, and for tables to which
    foreign keys refer.
    """
    filters, settings = profile.filters, of_leader(profile, leader)
    if not filters.rows:
        return
    if leader.session is not None:
        raise UserError(
            "rows of a MariaDB leader can't be left out",
            code="CDC-ROWS-UNFIT",
            where="profile key filters.rows",
            hint="leave whole tables out with filters.exclude_tables, and remove filters.rows",
        )
    tables = base_tables(settings, leader.name, filters)
    left_out = [table for table in tables if filters.condition(*table) is not None]
    is_known = (former_filters(newest) or {}).get("rows") == filters.listed()["rows"]
    for error in _unfit_rows(profile, leader, left_out):
        if not is_known:
            raise error
        log("the leader's table does not fit filters.rows any more", level=logging.WARNING, error=str(error))
    log("rows are left out", tables=", ".join(sorted(named(*table) for table in left_out)) or "none")
    if unused := filters.row_filters.unused(tables):
        log("no table is filtered by these globs", level=logging.WARNING, rows=", ".join(unused))
    if keys := table_checks.parents_with_rows_left_out(settings, filters, name=leader.name, named=named):
        log(
            "foreign keys refer to tables of which rows are left out: followers refuse rows that refer to such a row",
            level=logging.WARNING, keys=", ".join(keys),
        )  # fmt: skip


def _unfit_rows(profile: Profile, leader: Leader, tables: list[tuple[str, str]]) -> Iterator[UserError]:
    """Yields an error for each of ``tables`` whose rows can't be left out as in the profile."""
    filters, settings = profile.filters, of_leader(profile, leader)
    selection = RowSelection(filters.condition, logs_cascades=logs_cascades(leader.version))
    with connected_cursor(settings, leader.name) as cursor:
        for table in definitions(settings, leader.name, tables):
            masked = table.masked(partial(filters.mask, table.database, table.name))
            refusal = selection.checked(cursor, replace(masked, refusal=None)).refusal
            if refusal is not None and table.columns:  # a table that was dropped meanwhile has no columns
                yield UserError(
                    refusal,
                    code="CDC-ROWS-UNFIT",
                    where=f"table {table.database}.{table.name}",
                    hint="correct filters.rows, or leave the table out with filters.exclude_tables",
                )


def warn_of_cascades(profile: Profile, leader: Leader, *, log: Callable[..., None]) -> None:
    """Logs the tables whose rows may change without a record, by a foreign key to a table that is left out."""
    if logs_cascades(leader.version) or not profile.filters.listed():
        return
    found = changed_silently(profile.database.settings(), profile.filters, name=leader.name, named=named)
    if found:
        log(
            "rows change without a record: the leader does not log the changes of foreign keys, and the tables to "
            "which these refer are left out",
            level=logging.WARNING, tables=", ".join(found), hint="let these tables pass the filters, too",
        )  # fmt: skip


def former_filters(newest: Entry | None) -> dict[str, list[str]] | None:
    """Returns the filters that held up to the entry ``newest``. Returns None if they are not known, or if the stream is
    empty.
    """
    return None if newest is None or Pending.from_json(newest.copy).structure else newest.filters
