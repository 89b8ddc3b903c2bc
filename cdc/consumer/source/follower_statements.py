"""Makes of a leader's statement the one that this follower executes.

What is changed are the names of databases (``[renames]``) and the tablespaces of tables. These are made by statements
on the server, which are not replicated; where a table's rows are stored makes no difference to them.
"""

import logging
from dataclasses import replace

from cdc.consumer.source.renaming import Renaming
from cdc.consumer.source.statement_check import quoting
from cdc.model.record import Record
from cdc.service.logs import event
from cdc.sql.redaction import excerpt
from cdc.sql.table_options import replaced, table_options

__all__ = ["FollowerStatements"]

_LOG = logging.getLogger("cdc.consumer")
_OWN = "innodb_file_per_table"  # what TABLESPACE calls a file of the table's own, on every server
_EVERYWHERE = {_OWN, "innodb_system"}


class FollowerStatements:
    """``renaming`` changes statements to the follower's names of databases."""

    def __init__(self, renaming: Renaming) -> None:
        self._renaming = renaming

    def of(self, record: Record) -> Record:
        """A replicated Query record as the follower executes it. Raises as ``Renaming.statement``."""
        renamed = self._renaming.statement(record)
        values = [
            (option.value, _OWN)
            for option in table_options(renamed.query, **quoting(renamed.context))
            if option.name == "TABLESPACE" and option.value.token.text.lower() not in _EVERYWHERE
        ]
        if not values:
            return renamed
        event(
            _LOG, "table gets a tablespace of its own", sequence=record.sequence, statement=excerpt(record.query),
            instead_of=", ".join(sorted({span.token.text for span, _ in values})),
        )  # fmt: skip
        return replace(renamed, query=replaced(renamed.query, values))
