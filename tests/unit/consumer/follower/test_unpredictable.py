"""Which generated columns a follower may compute otherwise than its leader."""

import pytest

from cdc.consumer.follower.schema_cache import Column, unpredictable


def column(name: str, kind: str) -> Column:
    return Column(name, "", "", kind.partition("(")[0], "YES", kind, None, None, None, None)


GIVEN = [
    column("i", "int"), column("c", "char(3)"), column("v", "varchar(9)"), column("at", "timestamp"),
    column("dt", "datetime"), column("ms", "datetime(3)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "is_doubtful"),
    [
        ("(`i` + 1)", False),
        ("(`i` / 3)", True),
        ("concat(`v`,`i`)", False),
        ("concat(`c`,`i`)", True),
        ("hour(`dt`)", False),
        ("hour(`ms`)", True),
        ("hour(`at`)", True),
        ("`at`", True),
        ("dayname(`dt`)", True),
        ("monthname(`dt`)", True),
        ("week(`dt`,0)", True),
    ],
)
def test_what_may_depend_on_the_session(expression: str, is_doubtful: bool) -> None:
    expressions = {"g": expression, "of_g": "(`g` + 1)", "of_i": "(`i` + 1)"}
    generated = [column(name, "int")._replace(expression=text) for name, text in expressions.items()]
    assert unpredictable([*GIVEN, *generated], expressions) == ({"g", "of_g"} if is_doubtful else set())
