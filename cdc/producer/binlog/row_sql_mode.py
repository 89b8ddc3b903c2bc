"""Reads from a BEGIN event the sql_mode under which a server must compute from the rows of the transaction.

The leader logs it with the BEGIN of the transaction, and MySQL's own replicas apply rows under it. Modes that only
forbid values, or only change how a statement is parsed, have no effect on rows.
"""

from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.layout import QUERY_STATUS_VARIABLES_AT, TYPE_AT

__all__ = ["row_mode"]

# By their bits (MySQL source, sql/system_variables.h), in the order of the record's text.
_EFFECTIVE = {
    6: "NO_UNSIGNED_SUBTRACTION", 23: "NO_ZERO_IN_DATE", 24: "NO_ZERO_DATE", 25: "ALLOW_INVALID_DATES",
    31: "PAD_CHAR_TO_FULL_LENGTH", 32: "TIME_TRUNCATE_FRACTIONAL",
}  # fmt: skip
_DEFAULT = "NO_ZERO_IN_DATE,NO_ZERO_DATE"  # MySQL's default
_MAX_KNOWN = 1000
# A Query event's status variables start with flags2 and sql_mode: code 0, 4 bytes, code 1, 8 bytes.
_START = slice(QUERY_STATUS_VARIABLES_AT, QUERY_STATUS_VARIABLES_AT + 14)
_FLAGS2, _SQL_MODE = 0, 1
_SECOND_CODE_AT, _SQL_MODE_AT = 5, 6
_known: dict[bytes, str | None] = {}


def row_mode(query: bytes) -> str | None:
    """The modes, by name, that affect rows, from the bytes of a Query event; None where they are MySQL's default.

    Raises PromiseError, ValueError or LookupError for bytes that are not a Query event.
    """
    head = query[_START]
    try:
        return _known[head]
    except KeyError:
        pass
    if head[0] != _FLAGS2 or head[_SECOND_CODE_AT] != _SQL_MODE:  # another order: no server is known to write one
        names = ev.query(RawEvent(query[TYPE_AT], query, "", 0, 0)).variables.get("sql_mode", _DEFAULT).split(",")
        return _text([name for name in _EFFECTIVE.values() if name in names])
    if len(_known) >= _MAX_KNOWN:
        _known.clear()
    bits = int.from_bytes(head[_SQL_MODE_AT:], "little")
    mode = _known[head] = _text([name for bit, name in _EFFECTIVE.items() if bits >> bit & 1])
    return mode


def _text(names: list[str]) -> str | None:
    text = ",".join(names)
    return None if text == _DEFAULT else text
