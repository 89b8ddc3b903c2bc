"""Writes JSON documents that a SELECT shows as module ``decode.json_binary`` writes those of the binlog.

A document's text does not tell a DECIMAL from a double, a date from a string, nor signed integers from unsigned ones.
So the SELECT has, beside the text, the types of those members that the text does not tell, each by its number in the
document: the members of all objects are numbered by ``$**.*``, the elements of all arrays by ``$**[*]``. The server
lists the objects, and the arrays, from the outside in and in the order of the text, each with all that it has.
"""

import json
from base64 import b64decode
from json.encoder import encode_basestring
from typing import Any

from cdc.producer.decode.json_binary import LARGEST_SIGNED, sql_member
from cdc.producer.table_rows.temporal_texts import CLOCKS, DATES, DATETIME_DAYS, TIMES

__all__ = ["document_json", "document_sql"]

_TOLD = "'NULL','OBJECT','ARRAY','STRING','BOOLEAN','DOUBLE','INTEGER','UNSIGNED INTEGER'"
_NOT_TOLD = (
    f"JSON_TYPE(v) NOT IN ({_TOLD}) OR JSON_TYPE(v) = 'INTEGER' AND v > {LARGEST_SIGNED} "
    f"OR JSON_TYPE(v) = 'UNSIGNED INTEGER' AND v <= {LARGEST_SIGNED}"
)
# Their number comes first: nothing of a list that the server cut would be noticed otherwise.
_TYPES = (
    "(SELECT CONCAT(COUNT(*), ';', COALESCE(GROUP_CONCAT(CONCAT(n, ' ', JSON_TYPE(v)) SEPARATOR ';'), '')) "
    "FROM JSON_TABLE(%s, '%s' COLUMNS (n FOR ORDINALITY, v JSON PATH '$' ERROR ON EMPTY ERROR ON ERROR)) AS m "
    f"WHERE {_NOT_TOLD})"
)
_INTEGER_TAGS = {"INTEGER": "SignedInteger", "UNSIGNED INTEGER": "UnsignedInteger"}
_OPAQUE = "base64:type"
_WIDE_TEXT = 253  # the only type of bytes that the server does not show in base64
Types = dict[int, str]


class _Number(str):
    """A number as its text."""

    __slots__ = ()


class _Object(list[tuple[str, Any]]):
    """An object's members, in order."""

    __slots__ = ()


def document_sql(column: str) -> tuple[str, ...]:
    """What to select of a JSON column for ``document_json``: its type, the types of members, and its text."""
    members, elements = _TYPES % (column, "$**.*"), _TYPES % (column, "$**[*]")
    return f"JSON_TYPE({column})", members, elements, column


def document_json(kind: bytes, members: bytes | None, elements: bytes | None, text: bytes | None) -> str:
    """The value of a JSON column, ``{"Json":…}`` or ``{"JsonTyped":…}``, from what ``document_sql`` selects.

    Raises ValueError where the leader does not show it completely, or it has what can't be replicated exactly.
    """
    if text is None or members is None or elements is None:
        raise ValueError("the leader does not show a JSON document completely")
    kind_text = kind.decode()
    if members == b"0;" and elements == b"0;" and _is_told(kind_text, text):
        return f'{{"Json":{json.dumps(json.loads(text.decode()), ensure_ascii=False, separators=(",", ":"))}}}'
    # As latin1, since not all is UTF-8: text of utf16 and the like is in documents, and shown, as its bytes.
    tree = json.loads(text.decode("latin1"), object_pairs_hook=_Object, parse_int=_Number, parse_float=_Number)
    return f'{{"JsonTyped":{_Typed(_types(members), _types(elements)).text(tree, kind_text)}}}'


def _is_told(kind: str, text: bytes) -> bool:
    if kind in _INTEGER_TAGS:
        return (int(text) > LARGEST_SIGNED) == (kind != "INTEGER")
    return f"'{kind}'" in _TOLD


def _types(listed: bytes) -> Types:
    count, *entries = listed.decode().split(";")
    found = {int(number): kind for number, kind in (entry.split(" ", 1) for entry in entries if entry)}
    if len(found) != int(count):
        raise ValueError("the leader does not show the types in a JSON document completely")
    return found


class _Typed:
    """Writes a document as a tree, with the types of its members and elements by their numbers."""

    def __init__(self, members: Types, elements: Types) -> None:
        self._members, self._elements = members, elements
        self._next_member = self._next_element = 1

    def text(self, node: Any, kind: str | None) -> str:
        """The text of a node; ``kind`` is its type if the text does not tell it, and may be its type otherwise."""
        if isinstance(node, _Object):
            first, self._next_member = self._next_member, self._next_member + len(node)
            parts = [
                f"{_quoted(key)}:{self.text(value, self._members.get(number))}"
                for number, (key, value) in enumerate(node, first)
            ]
            return '{"object":{' + ",".join(parts) + "}}"
        if isinstance(node, list):
            first, self._next_element = self._next_element, self._next_element + len(node)
            parts = [self.text(each, self._elements.get(number)) for number, each in enumerate(node, first)]
            return '{"array":[' + ",".join(parts) + "]}"
        return _scalar(node, kind)


def _scalar(node: Any, kind: str | None) -> str:
    if kind is None or (f"'{kind}'" in _TOLD and kind not in _INTEGER_TAGS):
        if isinstance(node, _Number):
            return repr(float(node)) if not node.lstrip("-").isdecimal() else node
        return _quoted(node) if isinstance(node, str) else json.dumps(node)
    if kind in _INTEGER_TAGS:
        return f'{{"{_INTEGER_TAGS[kind]}":{node}}}'
    if kind == "DECIMAL":
        return f'{{"Decimal":"{node}"}}'
    if node.startswith(_OPAQUE):
        number, data = node.removeprefix(_OPAQUE).split(":", 1)
        return sql_member(int(number), b64decode(data))
    if kind == "BLOB":
        return sql_member(_WIDE_TEXT, node.encode("latin1"))
    return _temporal(node, kind)


def _quoted(latin1: str) -> str:
    return encode_basestring(latin1.encode("latin1").decode())


def _temporal(node: str, kind: str) -> str:
    if kind == "DATE":
        return DATES[node]
    clock, _, micros = node.partition(".")
    if kind == "TIME":
        return f'{{"Time":{{{TIMES[clock]},"subsecond":{int(micros or 0)}}}}}'
    if kind not in ("DATETIME", "TIMESTAMP"):
        raise ValueError(f"the JSON document has a member of the unknown SQL type {kind}")
    # A TIMESTAMP member is in the time zone of the leader's session, which the document does not have.
    tag = "LocalTimestamp" if kind == "TIMESTAMP" else "DateTime"
    return f'{{"{tag}":{{{DATETIME_DAYS[clock[:10]]},{CLOCKS[clock[11:]]},"subsecond":{int(micros or 0)}}}}}'
