"""Writes a JSON document as SQL that stores the same document, with the same SQL type of each member, or that compares
a column with the document.

A member has the type of the SQL expression from which it is made (MySQL manual, "The JSON Data Type"). BINARY, BIT, the
BLOBs and TIMESTAMP have neither a literal nor a CAST; only a column has such a type. So members of these types are
taken from columns of a recursive common table expression. The first row of that expression determines the types of the
columns, and the second row contains the values.

The JSON parser of MySQL 8.0 replaces one double in ten by a neighbouring double, but doubles in SQL literals are exact.
So for MySQL 8.0, a document with doubles is converted to the tagged form of typed documents (``JsonTyped`` in
``model.values``) by ``apart``; there each double becomes an SQL literal.
"""

import base64
import json
from typing import Any

from cdc.consumer.literals.scalars import SCALARS, from_base64, quoted

__all__ = ["EXACT", "apart", "checked", "document", "member_types", "same_document", "typed_document"]

# The JSON parser of MySQL 8.0 changes these doubles.
_INEXACT = "[0.41339201716594043, 463.78841705583204, 453368734.70145965, 1.4400278974044513e-301]"
# SQL that is true if the server's JSON parser keeps doubles unchanged
EXACT = f"CAST(CAST('{_INEXACT}' AS JSON) AS CHAR)='{_INEXACT}'"

_MOST_COLUMNS = 4000  # columns for members; a table has at most 4096 columns
_VARBINARY, _WIDE_TEXT, _BLOB, _BINARY, _BIT = 15, 253, 252, 254, 16
_BLOBS = {249: "TINYBLOB", 250: "MEDIUMBLOB", 251: "LONGBLOB"}
_CASTS = {
    "Date": "DATE",
    "Time": "TIME(6)",
    "DateTime": "DATETIME(6)",
    "SignedInteger": "SIGNED",
    "UnsignedInteger": "UNSIGNED",
}

_LONGEST_HOURS = 31
_TOO_LONG = "LongTime"

_Columns = list[tuple[str, str]]  # for each column, its type and the literal of its value


def document(content: Any) -> str:
    """Returns SQL for a JSON document without members of SQL types."""
    return f"CAST({quoted(json.dumps(content, ensure_ascii=False))} AS JSON)"


def apart(content: Any) -> Any:
    """Converts a document without SQL types to the tagged form that ``typed_document`` reads; returns None if the
    document contains no double.
    """
    if isinstance(content, float):
        return content
    if isinstance(content, list):
        found = [apart(member) for member in content]
        if all(tree is None for tree in found):
            return None
        return {"array": [_tree(*each) for each in zip(content, found, strict=True)]}
    if isinstance(content, dict):
        trees = {key: apart(member) for key, member in content.items()}
        if all(tree is None for tree in trees.values()):
            return None
        return {"object": {key: _tree(content[key], tree) for key, tree in trees.items()}}
    return None


def checked(tree: Any) -> Any:
    """Checks a document with members of SQL types (``JsonTyped`` in ``model.values``) for MySQL 8.0, which changes a
    TIME of 32 hours or more in a document.

    Returns the document, with such members marked. ``typed_document`` then raises an error for these members.
    """
    if not isinstance(tree, dict):
        return tree
    ((tag, content),) = tree.items()
    if tag == "array":
        return {"array": [*map(checked, content)]}
    if tag == "object":
        return {"object": {key: checked(member) for key, member in content.items()}}
    return {_TOO_LONG: content} if tag == "Time" and content["hour"] > _LONGEST_HOURS else tree


def _tree(content: Any, tree: Any) -> Any:
    """Returns the tagged form of the member ``content``; ``tree`` is the result of ``apart`` for it.

    If ``tree`` is None, the member contains no double. Then only an object gets a tag, since ``typed_document`` reads a
    list or a scalar without tags.
    """
    if tree is None and isinstance(content, dict):
        return {"object": {key: _tree(member, None) for key, member in content.items()}}
    return content if tree is None else tree


def typed_document(content: Any) -> str:
    """Returns SQL for a document whose members have SQL types. Raises ValueError if no expression can return the
    document.
    """
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
    """Returns the condition that the column ``name`` contains exactly the document ``text``, not just an equal one.

    For the server the documents 1 and 1.0 are equal, but their texts differ. An INTEGER 1 and a DECIMAL 1 have the same
    text, and so have a DATE and a string, but their types differ. So both texts and types are compared.
    """
    # An EXISTS with a condition on both documents can't be used: in MySQL 8.0 it finds no members of the table's
    # document. Without NO_MERGE the server would build the document again for each part.
    return f"({_parts(name)})=(SELECT /*+ NO_MERGE(x) */ {_parts('d')} FROM (SELECT {text} AS d) x)"


def _parts(document: str) -> str:
    types = ",".join([f"IFNULL({each},'')" for each in member_types(document)])
    return f"CAST(CAST({document} AS CHAR) AS BINARY),{types}"


def member_types(document: str) -> list[str]:
    """Returns SQL for the type of a document, and for the types of all its members; each may be NULL."""
    return [f"JSON_TYPE({document})", *(_types(document, path) for path in ("$**[*]", "$**.*"))]


def _types(document: str, path: str) -> str:
    members = f"JSON_TABLE({document},'{path}' COLUMNS(v JSON PATH '$')) m"
    return f"(SELECT JSON_ARRAYAGG(JSON_TYPE(v)) FROM {members})"


def _node(node: Any, columns: _Columns) -> str:
    """Returns SQL for a node of a typed document. As an argument of JSON_ARRAY or JSON_OBJECT, the SQL has the type of
    the node.
    """
    if isinstance(node, float):
        return SCALARS["Double"](node)
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
        # The session's time zone is UTC, so a DATETIME literal with the same parts is the same TIMESTAMP.
        return _column("TIMESTAMP(6)", SCALARS["DateTime"](content), columns)
    if tag == _TOO_LONG:
        raise ValueError("a TIME of 32 hours or more in a document, which MySQL 8.0 stores as another one")
    text = SCALARS[tag](content)
    kind = f"DECIMAL(65,{len(text.partition('.')[2])})" if tag == "Decimal" else _CASTS[tag]
    return f"CAST({text} AS {kind})"


def _opaque(kind: int, content: str, columns: _Columns) -> str:
    """Returns SQL for bytes that become a member with MySQL's field type ``kind``."""
    literal, length = from_base64(content), len(base64.b64decode(content))
    if kind == _VARBINARY:
        return literal
    if kind == _WIDE_TEXT:
        # The character sets of these texts have two or four bytes per character, and in ucs2 any two bytes are valid.
        # JSON_EXTRACT is needed, because a bare string would be parsed as JSON.
        return f"JSON_EXTRACT(JSON_ARRAY(_ucs2 {literal}),'$[0]')"
    if kind == _BLOB:
        # A BLOB column might be too short for the bytes, so a LONGBLOB column is used. COALESCE turns its value into a
        # BLOB, because an expression with BLOBs always has the type BLOB.
        return f"COALESCE({_column('LONGBLOB', literal, columns)},x'')"
    if kind == _BINARY:
        return _column(f"BINARY({length})", literal, columns)
    if kind == _BIT:
        return _column(f"BIT({8 * length})", literal, columns)
    return _column(_BLOBS[kind], literal, columns)


def _column(kind: str, value: str, columns: _Columns) -> str:
    columns.append((kind, value))
    return f"v{len(columns) - 1}"
