"""Which members of an ENUM or SET may be the same to the server."""

import pytest

from cdc.model.charset import text_decoder
from cdc.producer.decode.column_code import alike_members
from cdc.producer.decode.table_map import ENUM, Column


@pytest.mark.parametrize(
    ("members", "collation", "expected"),
    [
        (["a", "b", ""], "utf8mb4_0900_ai_ci", False),
        (["a", "A"], "utf8mb4_0900_ai_ci", True),
        (["a", "á"], "utf8mb4_0900_ai_ci", True),
        (["ss", "ß"], "utf8mb4_0900_ai_ci", True),
        (["a", "A"], "utf8mb4_0900_as_ci", True),
        (["a", "á"], "utf8mb4_0900_as_ci", False),
        (["a", "A"], "utf8mb4_bin", False),
        (["a", "A", "á"], "utf8mb4_0900_as_cs", False),
        (["a", "a"], "utf8mb4_bin", True),
    ],
)
def test_members_that_the_collation_may_take_for_the_same(members: list[str], collation: str, expected: bool) -> None:
    column = Column("e", ENUM, 1, charset="utf8mb4", members=tuple(map(str.encode, members)), collation=collation)
    decode = text_decoder("utf8mb4")
    assert decode is not None
    assert alike_members(column, decode) is expected
