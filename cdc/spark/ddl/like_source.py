"""Finds the table whose definition a statement CREATE TABLE … LIKE copies. Pure."""

from collections.abc import Mapping
from itertools import islice

from cdc.model.uri import Uri
from cdc.spark.ddl.lineage import Act
from cdc.sql.tokens import Token, tokens

__all__ = ["like_source"]

_HEAD = 20  # tokens: enough for both names of such a statement
_DOT, _BRACKET = Token("mark", "."), Token("mark", "(")


def like_source(act: Act, names: Mapping[str, str]) -> str | None:
    """The URI of the table after LIKE, with the leader's name of its database; None for any other statement.

    Records have it in ``like``. In older records it is parsed from the statement's text: ``names`` maps the server's
    names of databases to the leader's, and a table without a database is in that of the new table.
    """
    if act.like or act.action != "CreateTable":
        return act.like
    words = list(islice(tokens(act.text, ansi_quotes=False), _HEAD))
    _, words = _name(words[5 if [each.word() for each in words[2:5]] == ["IF", "NOT", "EXISTS"] else 2 :])
    words = words[1:] if words[:1] == [_BRACKET] else words
    if not words or words[0].word() != "LIKE" or len(words) < 2:
        return None
    parts, _ = _name(words[1:])
    created = Uri.parse(act.uri)
    database = names.get(parts[0], parts[0]) if len(parts) == 2 else created.database
    return str(Uri(created.resource, database, parts[-1]))


def _name(words: list[Token]) -> tuple[list[str], list[Token]]:
    """The parts of the name at the start of ``words``, and the words after it."""
    if len(words) > 2 and words[1] == _DOT:
        return [words[0].text, words[2].text], words[3:]
    return [each.text for each in words[:1]], words[1:]
