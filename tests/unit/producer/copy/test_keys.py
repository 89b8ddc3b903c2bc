"""Keys of a table: which of them it can have, so that rows can be read behind them, or be sent again."""

from dataclasses import replace

import pytest

from cdc.producer.copy.definition import CopiedColumn
from cdc.producer.copy.keys import Keys, has_key, key_literals, unfit
from tests.harness.copying import DEFINITION, T, keys_of


@pytest.mark.parametrize(
    ("charset", "after", "has"),
    [
        ("utf8mb4", '{"String":"😀"}', True),
        ("utf8mb3", '{"String":"ж"}', True),
        ("utf8mb3", '{"String":"\uffff"}', True),
        ("utf8mb3", '{"String":"😀"}', False),
        ("utf8mb3", '{"String":""}', True),
        ("ascii", '{"String":""}', True),
        ("latin1", '{"String":"é"}', True),
        ("latin1", '{"String":"ж"}', False),
        ("ascii", '{"String":"é"}', False),
        ("gbk", '{"String":"a"}', False),
        ("gbk", '{"Text":{"charset":"gbk","base64":"sKE="}}', True),
        ("ucs2", '{"Text":{"charset":"gbk","base64":"sA=="}}', False),
    ],
)
def test_nothing_can_be_read_behind_a_text_that_the_column_s_character_set_lacks(
    charset: str, after: str, has: bool
) -> None:
    column = CopiedColumn("id", "varchar", nullable=False, charset=charset)
    assert has_key(replace(DEFINITION, columns=(column,)), (after,)) is has


def test_a_repair_of_no_such_keys_is_refused() -> None:
    text, number = CopiedColumn("a", "varchar", False, charset="utf8mb3"), CopiedColumn("b", "int", False)
    made = replace(DEFINITION, columns=(text, number), key=("a", "b"))
    for value, other, fits in (
        ('{"String":"é"}', '{"SignedInteger":1}', True), ('{"String":"é"}', '{"UnsignedInteger":1}', True),
        ('{"String":"😀"}', '{"SignedInteger":1}', False), ('{"Text":{"charset":"sjis","base64":""}}', "1", False),
        ('{"String":"a"}', '{"String":"1"}', False), ('{"String":"a"}', '"Null"', False), ('"Null"', "{}", False),
        ('{"String":1}', '{"SignedInteger":1}', False), ('{"String":"a"}', '{"SignedInteger":1,"Float":1}', False),
    ):  # fmt: skip
        assert (unfit(made, Keys(T, ("a", "b"), ((value, other),))) is None) == fits
    assert unfit(made, Keys(T, ("a", "b"), (('{"String":"a"}', '"Null"'),))) == (
        '"Null" is no value of its column b (int)'
    )
    assert unfit(replace(DEFINITION, whole=True), keys_of(1)) == "its key names no range of rows"
    assert unfit(made, Keys(T, ("b", "a"), ())) == "its key is (a, b), the report's (b, a)"
    assert "its key is (id), the report's (b)" in str(unfit(DEFINITION, Keys(T, ("b",), (("1",),))))


def test_values_that_no_key_has_are_named() -> None:
    def refused(type_: str, value: str) -> str:
        with pytest.raises(ValueError) as raised:
            key_literals((CopiedColumn("id", type_, nullable=False),), (value,))
        return str(raised.value)

    assert refused("decimal", '{"Decimal":"1e5"}') == "not a decimal: '1e5'"
    assert refused("int", '{"Float":1}') == "not a value of a key: {'Float': 1}"
