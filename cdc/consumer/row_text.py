"""A row's values as the text between an INSERT's parentheses: the hottest path of the consumer. Pure.

What ``literal`` finds out of each value anew, its tag, is mostly the same down a column. So a function is made for a
table from the tags of one row: one f-string, in which each value is taken by its tag and formatted there. A row that
has another tag anywhere, and any value that is not as it should be, is left to ``literal``, which also says what is
wrong with it.
"""

from collections.abc import Callable, Sequence

from cdc.consumer.literals import literal
from cdc.consumer.scalars import SCALARS
from cdc.values import NULL, Value

__all__ = ["row_text"]

_INTEGERS = frozenset({"SignedInteger", "UnsignedInteger"})


def row_text(sample: Sequence[Value], places: Sequence[int]) -> Callable[[Sequence[Value]], str]:
    """The function that gives the literals of the values at ``places`` of a row, joined by commas.

    It raises ValueError for what is not a value of a record. ``sample`` is a row of the table.
    """
    source = ",".join(_expression(sample[place], place) for place in places)
    fast: Callable[[Sequence[Value]], str] = eval(f"lambda v: f{source!r}", dict(_NAMES))

    def text(image: Sequence[Value]) -> str:
        try:
            return fast(image)
        except (KeyError, TypeError, ValueError, AttributeError):
            return ",".join([literal(image[place]) for place in places])

    return text


def _expression(value: Value, place: int) -> str:
    """The replacement field for a column whose values are like this one."""
    tag = next(iter(value), "") if isinstance(value, dict) else ""
    if tag not in SCALARS:
        return f"{{literal(v[{place}])}}"
    content = f"v[{place}][{tag}]"
    if tag in _INTEGERS:
        text = f"int({content})"
    elif tag == "String":
        text = f"quote+{content}.replace(quote,quotes)+quote"
    else:
        text = f"to_{tag}({content})"
    return f"{{null if v[{place}]==Null else {text}}}"


_NAMES = {
    "literal": literal,
    "int": int,
    "quote": "'",
    "quotes": "''",
    "null": "NULL",
    "Null": NULL,
    **{tag: tag for tag in SCALARS},
    **{f"to_{tag}": function for tag, function in SCALARS.items()},
}
