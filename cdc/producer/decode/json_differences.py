"""Applies JSON differences to the document of the before-image: a partial update logs the differences instead of the
new document. Pure.

A leader logs differences if binlog_row_value_options = PARTIAL_JSON. Format: MySQL source, sql-common/json_diff.cc. A
difference consists of the operation (1 byte), the path and, unless the operation removes, the value as binary JSON; a
length-encoded length precedes the path and the value. The paths are exact, without wildcards and autowrapping: the
server resolves both before it logs a path.

``unless_triggers`` decides whether differences may be applied. A leader logs the differences that the expressions of an
UPDATE make. A value that a BEFORE UPDATE trigger assigns to the same column afterwards is not among these differences:
the leader's table contains this value, its binlog does not, and MySQL's own replicas miss it, too. The event does not
show whether there was a trigger, so the leader is queried for the present triggers of the table.
"""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from cdc.errors import PromiseError
from cdc.producer.binlog.events import packed_integer
from cdc.producer.decode.json_binary import json_value

__all__ = ["assigned", "json_after", "refuse", "unless_triggers"]

_REPLACE, _INSERT, _REMOVE = _OPERATIONS = range(3)
_NAMES = ("replace", "insert", "remove")
# Matches one leg of a path: a quoted key, an unquoted key, an index, or an index from the end. An unquoted key may
# contain any character above ASCII: the server's test for letters looks at the lowest byte of the code point.
_LEG = re.compile(r'\.(?:("(?:[^"\\]|\\.)*")|([^\x00-\x20"*.\[\]]+))|\[(?:(\d+)|last(?:-(\d+))?)\]', re.DOTALL)

# A node of a document: a dict for an object, a list for an array, another value of module json, or a _SqlMember.
_Node = Any


class _SqlMember:
    """A member of an SQL type, as its tagged value in a document's tree (module json_binary)."""

    __slots__ = ("tagged",)

    def __init__(self, tagged: dict[str, Any]) -> None:
        self.tagged = tagged


class _SqlMemberFound(Exception):
    pass


def json_after(before: str | None, differences: bytes, column: str) -> str:
    """Returns the document ``before`` of ``column`` with ``differences`` applied; both documents have the form that
    ``json_value`` returns.

    Raises ValueError if a difference can't be applied. ``before`` is None if the column is NULL.
    """
    try:
        if before is None:
            raise ValueError("differences to a document that is NULL")
        return _changed(before, differences) if differences else before
    except (ValueError, LookupError) as error:
        raise ValueError(f"column {column}: {error}") from None


def _changed(before: str, differences: bytes) -> str:
    document, at, number = _tree(before), 0, 0
    while at < len(differences):
        number += 1
        operation, value = differences[at], None
        if operation not in _OPERATIONS:
            raise ValueError(f"difference {number} has the unknown operation {operation}")
        path, at = _sized(differences, at + 1)
        if operation != _REMOVE:
            value, at = _sized(differences, at)
        if not _applied(document, operation, _legs(path), value):
            # The error does not contain the path: keys can be as private as values.
            raise ValueError(
                f"difference {number} ({_NAMES[operation]}) cannot be applied: the document before does not have what "
                "its path names, or has what it inserts"
            )
    return _text(document)


def _sized(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = packed_integer(data, at)
    found = data[at : at + length]
    if len(found) != length:
        raise ValueError("the differences end within one of them")
    return found, at + length


def _legs(path: bytes) -> list[str | int]:
    """Parses the legs of ``path``: keys, and indexes as in Python, which are negative if they count from the end."""
    text = path.decode()
    legs: list[str | int] = []
    at = 1
    while at < len(text) and (leg := _LEG.match(text, at)):
        quoted, key, index, from_end = leg.groups()
        if quoted is not None:
            legs.append(json.loads(quoted))
        elif key is not None:
            legs.append(key)
        else:
            legs.append(int(index) if index is not None else -1 - int(from_end or 0))
        at = leg.end()
    if text[:1] != "$" or at != len(text) or not legs:
        raise ValueError("a difference has no path that can be read")
    return legs


def _applied(document: _Node, operation: int, legs: list[str | int], value: bytes | None) -> bool:
    """Applies an operation at the path ``legs`` of ``document``; returns False if the document does not fit the
    operation.
    """
    *parents, last = legs
    for leg in parents:
        if not _has(document, leg):
            return False
        document = document[leg]
    if operation == _INSERT:
        return _inserted(document, last, _tree(json_value(value or b"")))
    if not _has(document, last):
        return False
    if operation == _REPLACE:
        document[last] = _tree(json_value(value or b""))
    else:
        del document[last]
    return True


def _has(container: _Node, leg: str | int) -> bool:
    if isinstance(leg, str):
        return isinstance(container, dict) and leg in container
    return isinstance(container, list) and -len(container) <= leg < len(container)


def _inserted(container: _Node, leg: str | int, value: _Node) -> bool:
    if isinstance(leg, int):
        if not isinstance(container, list):
            return False
        container.insert(leg, value)  # as in MySQL, an index out of bounds stands for the nearer end
        return True
    if not isinstance(container, dict) or leg in container:
        return False
    container[leg] = value
    # The server stores keys by their length in bytes, then by their bytes.
    members = sorted(container.items(), key=lambda member: (len(key := member[0].encode()), key))
    container.clear()
    container.update(members)
    return True


def _tree(text: str) -> _Node:
    ((form, content),) = json.loads(text).items()
    return content if form == "Json" else _from_typed(content)


def _from_typed(node: Any) -> _Node:
    if not isinstance(node, dict):
        return node
    if "array" in node:
        return [_from_typed(member) for member in node["array"]]
    if "object" in node:
        return {key: _from_typed(member) for key, member in node["object"].items()}
    return _SqlMember(node)


def _typed(node: _Node) -> Any:
    if isinstance(node, list):
        return {"array": [_typed(member) for member in node]}
    if isinstance(node, dict):
        return {"object": {key: _typed(member) for key, member in node.items()}}
    return node.tagged if isinstance(node, _SqlMember) else node


def _text(document: _Node) -> str:
    try:
        return f'{{"Json":{_dumped(document)}}}'
    except _SqlMemberFound:
        return f'{{"JsonTyped":{_dumped(_typed(document))}}}'


def _dumped(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=_found)


def _found(_: _SqlMember) -> Any:
    raise _SqlMemberFound


_WHOLE = "SET PERSIST binlog_row_value_options = '' on the leader, and end the sessions that are open"
_PLAIN_NAME = re.compile(r"[0-9A-Za-z_$ ]+")


def refuse(database: str, table: str, columns: Sequence[str]) -> None:
    """Raises PromiseError, since the profile does not allow differences."""
    raise PromiseError(
        f"a row of {database}.{table} has differences in place of a JSON document (partial JSON)",
        code="CDC-EVENT-PARTIAL-JSON",
        hint=f'{_WHOLE}; or set producer.partial_json = "apply", whose terms are in docs/types.md',
    )


def unless_triggers(
    ask: Callable[[str, str], Sequence[tuple[str, str]]],
) -> Callable[[str, str, Sequence[str]], None]:
    """Returns a function that allows differences if no BEFORE UPDATE trigger may assign one of the columns.

    ``ask(database, table)`` returns the names and statements of these triggers, and raises the errors of
    ``leader.inspect``.
    """

    def require_none(database: str, table: str, columns: Sequence[str]) -> None:
        """Raises PromiseError if a BEFORE UPDATE trigger of the table may assign one of the ``columns``."""
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
    """Returns the first of ``columns`` that the trigger's statement ``text`` names, and so may assign. Returns None if
    the statement names none of these columns.

    A name with other characters than ASCII letters, digits, _, $ and spaces counts as named: only the server knows how
    such names are compared, quoted and escaped.
    """
    for column in columns:
        if not _PLAIN_NAME.fullmatch(column) or re.search(
            rf"(?<![0-9A-Za-z_$]){re.escape(column)}(?![0-9A-Za-z_$])", text, re.IGNORECASE
        ):
            return column
    return None
