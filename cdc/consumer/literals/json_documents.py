"""Turns JSON documents into SQL that stores the same document, with the SQL type of each member, or compares with it.

A member gets the type of the expression it comes from (MySQL manual, "The JSON Data Type"). Some types have no literal
and no CAST, only columns: BINARY, BIT, the BLOBs and TIMESTAMP. Members of these types are columns of a recursive
common table expression, whose first row determines the columns' types and whose second row has the values.
"""

import base64
import json
from typing import Any

from cdc.consumer.literals.scalars import SCALARS, from_base64, quoted

__all__ = ["document", "member_types", "same_document", "typed_document"]

_MOST_COLUMNS = 4000  # a table has at most 4096 columns
_VARBINARY, _WIDE_TEXT, _BLOB, _BINARY, _BIT = 15, 253, 252, 254, 16
_BLOBS = {249: "TINYBLOB", 250: "MEDIUMBLOB", 251: "LONGBLOB"}
_CASTS = {
    "Date": "DATE",
    "Time": "TIME(6)",
    "DateTime": "DATETIME(6)",
    "SignedInteger": "SIGNED",
    "UnsignedInteger": "UNSIGNED",
}

_Columns = list[tuple[str, str]]  # each column's type and the literal of its value


def document(content: Any) -> str:
    """A document of JSON's own types as an expression."""
    return f"CAST({quoted(json.dumps(content, ensure_ascii=False))} AS JSON)"


def typed_document(content: Any) -> str:
    """A document with members of SQL types as an expression. Raises ValueError if no expression can give it."""
    columns: _Columns = []
    whole = f"CAST({_node(content, columns)} AS JSON)"
    if not columns:
        return whole
    if len(columns) > _MOST_COLUMNS:
        raise ValueError(
            f"a JSON document with {len(columns)} binary or TIMESTAMP members, at most {_MOST_COLUMNS} are possible"
        )
    names = ",".join(f"v{index}" for index in range(len(columns)))
    types = ",".join(f"v{index} {kind} PATH '$.v'" for index, (kind, _) in enumerate(columns))
    values = ",".join(value for _, value in columns)
    return (
        f"(WITH RECURSIVE c(n,{names}) AS (SELECT 1,{names} FROM JSON_TABLE('{{}}','$' COLUMNS({types})) t "
        f"UNION ALL SELECT 2,{values} FROM c WHERE n=1) SELECT {whole} FROM c WHERE n=2)"
    )


def same_document(name: str, text: str) -> str:
    """The condition that the column ``name`` holds exactly the document ``text``, not only one that compares as equal.

    In JSON 1 = 1.0, but the server's text of the documents differs. That text is the same for an INTEGER and a DECIMAL
    1, and for a DATE and a string, but the types of the members differ.
    """
    same = "e" if name.lower() == "`d`" else "d"
    conditions = [f"CAST(CAST({name} AS CHAR) AS BINARY)=CAST(CAST({same} AS CHAR) AS BINARY)"]
    conditions += [f"{one}<=>{other}" for one, other in zip(member_types(name), member_types(same), strict=True)]
    # NO_MERGE: otherwise the server would build the document again for each row.
    return f"EXISTS (SELECT /*+ NO_MERGE(x) */ 1 FROM (SELECT {text} AS {same}) x WHERE {' AND '.join(conditions)})"


def member_types(document: str) -> list[str]:
    """The types of a document and of all its members, as expressions, which can be NULL."""
    return [f"JSON_TYPE({document})", *(_types(document, path) for path in ("$**[*]", "$**.*"))]


def _types(document: str, path: str) -> str:
    members = f"JSON_TABLE({document},'{path}' COLUMNS(v JSON PATH '$')) m"
    return f"(SELECT JSON_ARRAYAGG(JSON_TYPE(v)) FROM {members})"


def _node(node: Any, columns: _Columns) -> str:
    """A node of a typed document as an expression that has the node's type as an argument of JSON_ARRAY or the like."""
    if not isinstance(node, dict):
        return document(node)
    ((tag, content),) = node.items()
    if tag == "array":
        return f"JSON_ARRAY({','.join([_node(member, columns) for member in content])})"
    if tag == "object":
        members = [f"{quoted(key)},{_node(member, columns)}" for key, member in content.items()]
        return f"JSON_OBJECT({','.join(members)})"
    if tag == "Opaque":
        return _opaque(content["type"], content["base64"], columns)
    if tag == "LocalTimestamp":
        # The session's time zone is UTC, so the value's parts are those of the literal.
        return _column("TIMESTAMP(6)", SCALARS["DateTime"](content), columns)
    text = SCALARS[tag](content)
    kind = f"DECIMAL(65,{len(text.partition('.')[2])})" if tag == "Decimal" else _CASTS[tag]
    return f"CAST({text} AS {kind})"


def _opaque(kind: int, content: str, columns: _Columns) -> str:
    """Bytes as a member of MySQL's field type ``kind``."""
    literal, length = from_base64(content), len(base64.b64decode(content))
    if kind == _VARBINARY:
        return literal
    if kind == _WIDE_TEXT:
        # These character sets have two or four bytes a character, and in ucs2 all pairs of bytes are valid. A bare
        # string would be parsed as JSON.
        return f"JSON_EXTRACT(JSON_ARRAY(_ucs2 {literal}),'$[0]')"
    if kind == _BLOB:
        # An expression over BLOBs has the type BLOB whatever its length, but a BLOB column may be too short.
        return f"COALESCE({_column('LONGBLOB', literal, columns)},x'')"
    if kind == _BINARY:
        return _column(f"BINARY({length})", literal, columns)
    if kind == _BIT:
        return _column(f"BIT({8 * length})", literal, columns)
    return _column(_BLOBS[kind], literal, columns)


def _column(kind: str, value: str, columns: _Columns) -> str:
    columns.append((kind, value))
    return f"v{len(columns) - 1}"
