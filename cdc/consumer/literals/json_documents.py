"""JSON documents as SQL that stores the same document, each member's type included, and finds it again.

A member has the type of the expression it comes from (MySQL manual, "The JSON Data Type"). Some types no literal and no
CAST has, only columns: BINARY, BIT, the BLOBs and TIMESTAMP. Such members are carried by columns: those of a recursive
table, whose types its first row decides and whose values are in its second one.
"""

import base64
import json
from typing import Any

from cdc.consumer.literals.scalars import SCALARS, from_base64, quoted

__all__ = ["document", "same_document", "typed_document"]

_MOST_CARRIED = 4000  # a table has 4096 columns at most
_VARBINARY, _WIDE_TEXT, _BLOB, _BINARY, _BIT = 15, 253, 252, 254, 16
_BLOBS = {249: "TINYBLOB", 250: "MEDIUMBLOB", 251: "LONGBLOB"}
_CASTS = {
    "Date": "DATE",
    "Time": "TIME(6)",
    "DateTime": "DATETIME(6)",
    "SignedInteger": "SIGNED",
    "UnsignedInteger": "UNSIGNED",
}

_Carried = list[tuple[str, str]]  # each column's type and the literal of its value


def document(content: Any) -> str:
    """A document of JSON's own types as an expression."""
    return f"CAST({quoted(json.dumps(content, ensure_ascii=False))} AS JSON)"


def typed_document(content: Any) -> str:
    """A document with members of SQL types as an expression. Raises ValueError where a follower can't be told it."""
    carried: _Carried = []
    whole = f"CAST({_node(content, carried)} AS JSON)"
    if not carried:
        return whole
    if len(carried) > _MOST_CARRIED:
        raise ValueError(
            f"a JSON document with {len(carried)} binary or TIMESTAMP members, {_MOST_CARRIED} are possible"
        )
    names = ",".join(f"v{place}" for place in range(len(carried)))
    types = ",".join(f"v{place} {kind} PATH '$.v'" for place, (kind, _) in enumerate(carried))
    values = ",".join(value for _, value in carried)
    return (
        f"(WITH RECURSIVE c(n,{names}) AS (SELECT 1,{names} FROM JSON_TABLE('{{}}','$' COLUMNS({types})) t "
        f"UNION ALL SELECT 2,{values} FROM c WHERE n=1) SELECT {whole} FROM c WHERE n=2)"
    )


def same_document(name: str, text: str) -> str:
    """The condition that the column ``name`` holds the document ``text``, and not one that is merely equal to it.

    To JSON 1 = 1.0, which the server's own text of a document tells apart; the text is the same for the number 1 as an
    INTEGER and a DECIMAL, for a DATE and a string, which the types of all members in their order tell apart.
    """
    same = "e" if name.lower() == "`d`" else "d"
    conditions = [
        f"CAST(CAST({name} AS CHAR) AS BINARY)=CAST(CAST({same} AS CHAR) AS BINARY)",
        f"JSON_TYPE({name})=JSON_TYPE({same})",
        *(f"{_types(name, path)}<=>{_types(same, path)}" for path in ("$**[*]", "$**.*")),
    ]
    # Merged into the outer query, the document would be made anew for each row.
    return f"EXISTS (SELECT /*+ NO_MERGE(x) */ 1 FROM (SELECT {text} AS {same}) x WHERE {' AND '.join(conditions)})"


def _types(document: str, path: str) -> str:
    members = f"JSON_TABLE({document},'{path}' COLUMNS(v JSON PATH '$')) m"
    return f"(SELECT JSON_ARRAYAGG(JSON_TYPE(v)) FROM {members})"


def _node(node: Any, carried: _Carried) -> str:
    """A node of a typed document as an expression whose value has the node's type inside of JSON_ARRAY and the like."""
    if not isinstance(node, dict):
        return document(node)
    ((tag, content),) = node.items()
    if tag == "array":
        return f"JSON_ARRAY({','.join([_node(member, carried) for member in content])})"
    if tag == "object":
        members = [f"{quoted(key)},{_node(member, carried)}" for key, member in content.items()]
        return f"JSON_OBJECT({','.join(members)})"
    if tag == "Opaque":
        return _opaque(content["type"], content["base64"], carried)
    if tag == "LocalTimestamp":
        # The session's time zone is UTC, so the value's own parts are what its clock shows.
        return _carry("TIMESTAMP(6)", SCALARS["DateTime"](content), carried)
    text = SCALARS[tag](content)
    kind = f"DECIMAL(65,{len(text.partition('.')[2])})" if tag == "Decimal" else _CASTS[tag]
    return f"CAST({text} AS {kind})"


def _opaque(kind: int, content: str, carried: _Carried) -> str:
    """Bytes as a member of MySQL's field type ``kind``."""
    literal, length = from_base64(content), len(base64.b64decode(content))
    if kind == _VARBINARY:
        return literal
    if kind == _WIDE_TEXT:
        # Each of these character sets has whole pairs of bytes, and ucs2 takes all pairs. Alone it would be parsed.
        return f"JSON_EXTRACT(JSON_ARRAY(_ucs2 {literal}),'$[0]')"
    if kind == _BLOB:
        # Expressions over BLOBs are of this type whatever their length, so that a column of it may be too short.
        return f"COALESCE({_carry('LONGBLOB', literal, carried)},x'')"
    if kind == _BINARY:
        return _carry(f"BINARY({length})", literal, carried)
    if kind == _BIT:
        return _carry(f"BIT({8 * length})", literal, carried)
    return _carry(_BLOBS[kind], literal, carried)


def _carry(kind: str, value: str, carried: _Carried) -> str:
    carried.append((kind, value))
    return f"v{len(carried) - 1}"
