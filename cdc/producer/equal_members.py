"""Finds out whether two members of an ENUM or SET are equal in its collation; a server without strict mode allows such
members.

A server reads the text of such a member as the first of the equal members, so records can't contain the text. Only the
server knows which texts are equal, since each collation has its own rules: in utf8mb4_general_ci ß equals s, in
latin1_swedish_ci ü equals y.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache

from cdc.model.charset import member_texts

__all__ = ["asking"]

_MOST_ANSWERS = 10_000


def asking(
    count_different: Callable[[Sequence[str], str, str], int],
) -> Callable[[tuple[bytes, ...], str, str], bool]:
    """Returns a function that decides whether any of the members in a character set and collation are equal.

    ``count_different(texts, charset, collation)`` queries the server, and raises the errors of ``leader.inspect``.
    """

    @lru_cache(maxsize=_MOST_ANSWERS)
    def are_equal(members: tuple[bytes, ...], charset: str, collation: str) -> bool:
        if len(set(members)) < len(members):
            return True
        texts = member_texts(members, charset)
        # If members are not valid text, records contain their numbers.
        if len(members) < 2 or texts is None or collation.endswith(("_bin", "binary")):
            return False
        return count_different(texts, charset, collation) < len(members)

    return are_equal
