"""The sql_mode under which a transaction's rows were made, as far as it decides what a server computes from them.

The leader logs it with the BEGIN of the transaction, and a replica of MySQL's own applies rows under it. Modes that
only forbid, or only say how a statement's text is read, matter no more where rows are.
"""

from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.layout import QUERY_STATUS_VARIABLES_AT, TYPE_AT

__all__ = ["row_mode"]

# By their bits (MySQL source, sql/system_variables.h), in the order of the record's text.
_COMPUTING = {
    6: "NO_UNSIGNED_SUBTRACTION", 23: "NO_ZERO_IN_DATE", 24: "NO_ZERO_DATE", 25: "ALLOW_INVALID_DATES",
    31: "PAD_CHAR_TO_FULL_LENGTH", 32: "TIME_TRUNCATE_FRACTIONAL",
}  # fmt: skip
_USUAL = "NO_ZERO_IN_DATE,NO_ZERO_DATE"  # MySQL's default
_MOST_KNOWN = 1000
# A Query's status variables start with flags2 and sql_mode: code 0, 4 bytes, code 1, 8 bytes.
_START = slice(QUERY_STATUS_VARIABLES_AT, QUERY_STATUS_VARIABLES_AT + 14)
_FLAGS2, _SQL_MODE = 0, 1
_SECOND_CODE_AT, _SQL_MODE_AT = 5, 6
_known: dict[bytes, str | None] = {}


def row_mode(query: bytes) -> str | None:
    """Of a Query event's bytes, the names of its session's computing modes; None where they are the usual ones.

    Raises PromiseError, ValueError or LookupError for what is no Query event.
    """
    head = query[_START]
    try:
        return _known[head]
    except KeyError:
        pass
    if head[0] != _FLAGS2 or head[_SECOND_CODE_AT] != _SQL_MODE:  # another order: no server is known to write one
        names = ev.query(RawEvent(query[TYPE_AT], query, "", 0, 0)).variables.get("sql_mode", _USUAL).split(",")
        return _text([name for name in _COMPUTING.values() if name in names])
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    bits = int.from_bytes(head[_SQL_MODE_AT:], "little")
    mode = _known[head] = _text([name for bit, name in _COMPUTING.items() if bits >> bit & 1])
    return mode


def _text(names: list[str]) -> str | None:
    text = ",".join(names)
    return None if text == _USUAL else text
