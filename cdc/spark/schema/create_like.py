"""The table after which a statement makes another one, CREATE TABLE … LIKE, whose definition that one gets. Pure."""

from collections.abc import Mapping
from itertools import islice

from cdc.model.uri import Uri
from cdc.spark.schema.lineage import Act
from cdc.sql.tokens import Token, tokens

__all__ = ["made_like"]

_HEAD = 20  # tokens: as many as the names of such a statement take
_DOT, _BRACKET = Token("mark", "."), Token("mark", "(")


def made_like(act: Act, names: Mapping[str, str]) -> str | None:
    """The URI of the table after LIKE, under the leader's name; None for any other act.

    The producer says it. Records of before it did are told by their text, in which ``names`` says how the leader calls
    the server's databases; a name without one is taken for one of the new table's database.
    """
    if act.like or act.action != "CreateTable":
        return act.like
    words = list(islice(tokens(act.text, ansi_quotes=False), _HEAD))
    _, words = _name(words[5 if [each.word() for each in words[2:5]] == ["IF", "NOT", "EXISTS"] else 2 :])
    words = words[1:] if words[:1] == [_BRACKET] else words
    if not words or words[0].word() != "LIKE" or len(words) < 2:
        return None
    parts, _ = _name(words[1:])
    made = Uri.parse(act.uri)
    database = names.get(parts[0], parts[0]) if len(parts) == 2 else made.database
    return str(Uri(made.resource, database, parts[-1]))


def _name(words: list[Token]) -> tuple[list[str], list[Token]]:
    """The parts of the name that comes next, and what follows."""
    if len(words) > 2 and words[1] == _DOT:
        return [words[0].text, words[2].text], words[3:]
    return [each.text for each in words[:1]], words[1:]
