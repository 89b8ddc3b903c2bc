"""Documents with doubles as trees: the same documents, with each double a member of its own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.literals.json_documents import apart, checked, typed_document

PLAIN = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
DOCUMENTS = st.recursive(
    PLAIN | NUMBERS,
    lambda members: st.lists(members, max_size=4) | st.dictionaries(st.text(max_size=2), members, max_size=4),
    max_leaves=12,
)


def document_of(tree: Any) -> Any:
    if not isinstance(tree, dict):
        assert not has_double(tree) or isinstance(tree, float)
        return tree
    ((kind, content),) = tree.items()
    if kind == "array":
        return [document_of(member) for member in content]
    assert kind == "object"
    return {key: document_of(member) for key, member in content.items()}


def has_double(content: Any) -> bool:
    if isinstance(content, dict):
        content = list(content.values())
    return any(map(has_double, content)) if isinstance(content, list) else isinstance(content, float)


@given(DOCUMENTS)
def test_the_tree_is_the_document_with_its_doubles_apart(content: Any) -> None:
    tree = apart(content)
    assert (tree is not None) == has_double(content)
    if tree is not None:
        assert repr(document_of(tree)) == repr(content)


def test_a_time_that_the_server_would_change_is_refused() -> None:
    time = {"negative": True, "hour": 32, "minute": 0, "second": 0, "subsecond": 0}
    tree = {"object": {"a": {"array": [1, {"Time": time}]}}}
    assert "'-32:00:00'" in typed_document(tree)
    with pytest.raises(ValueError, match="a TIME of 32 hours or more"):
        typed_document(checked(tree))
    short = {"array": [{"Time": time | {"hour": 31}}, 0.5]}
    assert checked(short) == short


def test_doubles_are_literals() -> None:
    tree = apart({"a": [0.1, {"b": {}}, -0.0], "c": [1, "0.1"]})
    assert typed_document(tree) == (
        "CAST(JSON_OBJECT('a',JSON_ARRAY(0.1e0,JSON_OBJECT('b',JSON_OBJECT()),-0.0e0),"
        "'c',CAST('[1, \"0.1\"]' AS JSON)) AS JSON)"
    )
    assert typed_document(apart(0.1)) == "CAST(0.1e0 AS JSON)"
