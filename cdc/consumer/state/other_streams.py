"""Refuses what connects the tables of a stream with tables that other streams bring to the same follower.

Each stream is applied at its own pace. A foreign key between the tables of two streams would refuse rows, or change
rows otherwise than on the leader: if a parent row is deleted and inserted again there, and a child row is inserted
after that, then a follower that applies the child's stream first loses the child row with ON DELETE CASCADE.
"""

import logging
from collections.abc import Callable, Iterator

from cdc.config.filters import Filters
from cdc.consumer.errors import Refused, Unapplicable
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, quoted, table_name
from cdc.consumer.state.checkpoint import CHECKPOINT
from cdc.model.record import Record, Uri
from cdc.service.logs import event
from cdc.sql.tokens import excerpt

__all__ = ["require_no_keys_across", "require_own_model", "warn_of_other_streams"]

_LOG = logging.getLogger("cdc.consumer")
_KEYS = (
    "SELECT CONSTRAINT_NAME, CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME "
    "FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE"
)
Passes = Callable[[Uri], bool]


def require_no_keys_across(session: Session, record: Record, *, passes: Passes) -> None:
    """Raises Unapplicable if a foreign key connects the table of ``record`` with a table of another stream.
    ``passes(uri)`` decides which of the follower's tables are replicated by this stream.
    """
    table = record.uri
    if not _other_streams(session, table.resource):
        return
    drops = [
        f"ALTER TABLE {table_name(child)} DROP FOREIGN KEY {identifier(name)}"
        for name, child, parent in _keys(session, table)
        if not passes(parent if child == table else child)
    ]
    if drops:
        what = "a foreign key connects the follower's table with one of another stream, whose rows come at other times"
        raise Unapplicable(
            what,
            code="CDC-FOLLOWER-KEY-ACROSS-STREAMS",
            record=record,
            refused=Refused(0, what),
            hint="let one stream replicate both tables, or on the follower: SET sql_log_bin = 0, since the audit takes "
            f"an ALTER for drift; {'; '.join(drops)}",
        )


def require_own_model(session: Session, record: Record, *, passes: Passes) -> None:
    """Raises Unapplicable for CREATE TABLE … LIKE a table of another stream: on the follower, that table may have
    another definition than the leader's table had at that time. If the follower has no such table, it refuses the
    statement itself.
    """
    models = [Uri.parse(affect["like"]) for affect in record.affects if "like" in affect]
    foreign = [model for model in models if not passes(model)]
    if not any(_exists(session, model) for model in foreign) or not _other_streams(session, record.uri.resource):
        return
    raise Unapplicable(
        f"the table after LIKE is one of another stream, and may have another definition here: {excerpt(record.query)}",
        code="CDC-FOLLOWER-LIKE-ACROSS-STREAMS",
        record=record,
        hint="create the table on the follower by hand, with the definition that SHOW CREATE TABLE shows on the "
        f"leader, and then continue with --skip {record.sequence}",
    )


def warn_of_other_streams(session: Session, resource: str, filters: Filters) -> None:
    """Logs a warning if the follower has other streams, and this stream has no ``filters``: its tables are unknown."""
    if not filters.listed() and _other_streams(session, resource):
        event(
            _LOG, "the follower has other streams, too: what connects their tables with this one's is not noticed",
            level=logging.WARNING,
            hint="give this profile the filters of its producer: docs/filters-and-renames.md (Several streams)",
        )  # fmt: skip


def _other_streams(session: Session, resource: str) -> bool:
    """Whether the follower has a checkpoint of another leader's name."""
    checkpoints = CHECKPOINT.within(session.schema)
    return bool(session.rows(f"SELECT 1 FROM {checkpoints} WHERE resource<>{quoted(resource)} LIMIT 1"))


def _exists(session: Session, table: Uri) -> bool:
    where = f"TABLE_SCHEMA = {quoted(table.database)} AND TABLE_NAME = {quoted(table.table or '')}"
    return bool(session.rows(f"SELECT 1 FROM information_schema.TABLES WHERE {where}"))


def _keys(session: Session, table: Uri) -> Iterator[tuple[str, Uri, Uri]]:
    """Yields the foreign keys of a table, and those that refer to it: the name, the child and the parent."""
    database, name = quoted(table.database), quoted(table.table or "")
    of = f"(CONSTRAINT_SCHEMA = {database} AND TABLE_NAME = {name})"
    to = f"(UNIQUE_CONSTRAINT_SCHEMA = {database} AND REFERENCED_TABLE_NAME = {name})"
    for key, *ends in session.rows(f"{_KEYS} {of} OR {to}"):
        child, parent = (table._replace(database=str(ends[at]), table=str(ends[at + 1])) for at in (0, 2))
        yield str(key), child, parent
