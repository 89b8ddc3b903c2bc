"""Is one server's statement another's word for word, as where an operator ran by hand what was skipped? Pure.

Nobody here knows what SQL means, so little is let go: spaces and comments, the case of what is no string, backticks,
and the follower's other names of databases.
"""

from collections.abc import Mapping

from cdc.config.renames import Renames
from cdc.model.uri import Uri
from cdc.spark.schema.lineage import TEXT, Act
from cdc.sql.tokens import Token, tokens

__all__ = ["same_words"]

_DOT = Token("mark", ".")


def same_words(leader: Act, follower: Act, renames: Renames) -> bool:
    """Whether both statements, which do the same to objects of the same names, have the same words.

    Each is told by its first act: its object is under the leader's name, the text under the server's own.
    Of a text that was cut nobody knows the end, so it is never the same.
    """
    cut = max(len(leader.text), len(follower.text)) >= TEXT
    return not cut and _words(leader, {}) == _words(follower, renames.leaders)


def _words(act: Act, names: Mapping[str, str]) -> list[Token]:
    """The statement's tokens; ``names`` says how the leader calls databases."""
    found = list(tokens(act.text, ansi_quotes=False))
    of_database = Uri.parse(act.uri).table is None and act.action.endswith("Database")
    words = []
    for token, behind in zip(found, [*found[1:], None], strict=True):
        if token.kind in ("word", "quoted"):
            text = names.get(token.text, token.text) if of_database or behind == _DOT else token.text
            words.append(Token("name", text.upper()))
        else:
            words.append(token)
    return words
