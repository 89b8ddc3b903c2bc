"""Tells whether the texts of two statements are the same, as when an operator runs a skipped statement by hand. Pure.

SQL is not interpreted here, so only these differences are ignored: white space and comments, upper and lower case
outside of strings, backquotes, and the follower's names of renamed databases.
"""

from collections.abc import Mapping

from cdc.config.renames import Renames
from cdc.model.uri import Uri
from cdc.spark.ddl.lineage import TEXT, Act
from cdc.sql.tokens import Token, tokens

__all__ = ["same_statement", "words"]

_NO_NAMES: Mapping[str, str] = {}
_DOT = Token("mark", ".")


def same_statement(leader: Act, follower: Act, renames: Renames) -> bool:
    """Whether both statements, which affect objects of the same names in the same way, have the same text.

    Each statement is given by its first act, whose URI has the leader's names and whose text has its server's own. A
    text that was truncated is never the same.
    """
    truncated = max(len(leader.text), len(follower.text)) >= TEXT
    return not truncated and _words(leader, {}) == _words(follower, renames.leaders)


def words(statement: str, names: Mapping[str, str] = _NO_NAMES, *, of_database: bool = False) -> list[Token]:
    """A statement's tokens, without what is ignored here, and with databases renamed by ``names``.

    All of its names are databases' if it is ``of_database``.
    """
    found = list(tokens(statement, ansi_quotes=False))
    compared = []
    for token, following in zip(found, [*found[1:], None], strict=True):
        if token.kind in ("word", "quoted"):
            text = names.get(token.text, token.text) if of_database or following == _DOT else token.text
            compared.append(Token("name", text.upper()))
        else:
            compared.append(token)
    return compared


def _words(act: Act, names: Mapping[str, str]) -> list[Token]:
    of_database = Uri.parse(act.uri).table is None and act.action.endswith("Database")
    return words(act.text, names, of_database=of_database)
