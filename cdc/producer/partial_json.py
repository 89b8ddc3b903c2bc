"""Decides whether differences that were logged in place of JSON documents may be applied to the documents before them.

Under binlog_row_value_options = PARTIAL_JSON a leader logs the differences that the expressions of an UPDATE make. A
value that a BEFORE UPDATE trigger assigns to the same column afterwards is not among them: the leader's own table has
that value but its binlog does not, and MySQL's own replicas do not get it either. The event does not show that there
was a trigger, so the leader is queried for the present triggers of the table.
"""

import re
from collections.abc import Callable, Sequence

from cdc.errors import PromiseError

__all__ = ["assigned", "refuse", "unless_triggers"]

_WHOLE = "SET PERSIST binlog_row_value_options = '' on the leader, and end the sessions that are open"
_PLAIN_NAME = re.compile(r"[0-9A-Za-z_$ ]+")


def refuse(database: str, table: str, columns: Sequence[str]) -> None:
    """Raises PromiseError: the profile does not allow differences."""
    raise PromiseError(
        f"a row of {database}.{table} has differences in place of a JSON document (partial JSON)",
        code="CDC-EVENT-PARTIAL-JSON",
        hint=f'{_WHOLE}; or set producer.partial_json = "apply", whose terms are in docs/types.md',
    )


def unless_triggers(
    ask: Callable[[str, str], Sequence[tuple[str, str]]],
) -> Callable[[str, str, Sequence[str]], None]:
    """Allows differences if no BEFORE UPDATE trigger may assign one of the columns.

    ``ask(database, table)`` gives these triggers' names and statements, and raises the errors of ``leader.inspect``.
    """

    def require_none(database: str, table: str, columns: Sequence[str]) -> None:
        """Raises PromiseError if there is such a trigger."""
        for name, text in ask(database, table):
            if column := assigned(text, columns):
                raise PromiseError(
                    f"the binlog may lack what trigger {name} (BEFORE UPDATE) of {database}.{table} does to the JSON "
                    f"column {column}: with partial JSON it has the differences that the statement itself made",
                    code="CDC-EVENT-PARTIAL-JSON-TRIGGER",
                    hint=f"{_WHOLE}; then make a fresh copy, or skip the event and repair its rows on the follower",
                )

    return require_none


def assigned(text: str, columns: Sequence[str]) -> str | None:
    """The first of ``columns`` that the trigger's statement ``text`` may assign: any column that it names.

    A name with other characters than ASCII letters, digits, _, $ and spaces counts as named: only the server knows how
    these are compared, quoted and escaped.
    """
    for column in columns:
        if not _PLAIN_NAME.fullmatch(column) or re.search(
            rf"(?<![0-9A-Za-z_$]){re.escape(column)}(?![0-9A-Za-z_$])", text, re.IGNORECASE
        ):
            return column
    return None
