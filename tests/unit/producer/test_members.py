"""Which members of an ENUM or SET are equal to the server, and when it is asked."""

from collections.abc import Sequence

import pytest

from cdc.producer.table_checks import member_check


@pytest.mark.parametrize(
    ("members", "charset", "collation", "expected"),
    [
        ([b"a"], "utf8mb4", "utf8mb4_0900_ai_ci", False),
        ([b"a", b"A"], "utf8mb4", "utf8mb4_bin", False),
        ([b"a", b"a"], "utf8mb4", "utf8mb4_bin", True),
        ([b"\0", b"\1"], "binary", "binary", False),
        ([b"a", b"A"], "cp1251", "cp1251_general_ci", False),  # these are replicated by their numbers anyway
        ([b"a", b"a"], "utf8mb4", "utf8mb4_0900_ai_ci", True),
    ],
)
def test_the_server_is_not_asked_in_vain(members: list[bytes], charset: str, collation: str, expected: bool) -> None:
    are_equal = member_check(lambda *_: pytest.fail("asked"))
    assert are_equal(tuple(members), charset, collation) is expected


def test_the_server_says_once_how_many_are_different() -> None:
    asked: list[tuple[Sequence[str], str, str]] = []

    def count(texts: Sequence[str], charset: str, collation: str) -> int:
        asked.append((texts, charset, collation))
        return 2 if "ü" in texts else 3

    are_equal = member_check(count)
    for _ in range(2):
        assert are_equal((b"y", b"\xfc", b"x"), "latin1", "latin1_swedish_ci") is True
        assert are_equal((b"y", b"u", b"x"), "latin1", "latin1_swedish_ci") is False
    assert asked == [(["y", "ü", "x"], "latin1", "latin1_swedish_ci"), (["y", "u", "x"], "latin1", "latin1_swedish_ci")]
