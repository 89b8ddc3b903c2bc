"""Which offsets of a server's topics are read, on from those that a state covers."""

import pytest

from cdc.errors import UserError
from cdc.spark.input.spans import Span


def test_the_rest_of_a_span_after_the_offsets_of_a_state() -> None:
    partition = ("topic", 0)
    assert Span({partition: (3, 9)}).after({partition: 5}) == Span({partition: (5, 9)})
    assert Span({partition: (5, 9), ("new", 0): (2, 4)}).after({partition: 5}) == Span(
        {partition: (5, 9), ("new", 0): (2, 4)}
    )
    with pytest.raises(UserError, match="the topic begins at offset 6, earlier audits have read up to offset 5"):
        Span({partition: (6, 9)}).after({partition: 5})
    with pytest.raises(UserError, match="the topic ends at offset 9, earlier audits have read up to offset 10"):
        Span({partition: (3, 9)}).after({partition: 10})
    # With a limit, the offsets between may be markers of Kafka transactions; missing records show in the sequences.
    assert Span({partition: (6, 9)}, 70).after({partition: 5}) == Span({partition: (6, 9)}, 70)
