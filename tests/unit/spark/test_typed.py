"""The SQL of typed values parses the JSON of a value once: in a branch of CASE, Spark parses again for each parser."""

import pytest

from cdc.spark.frames.typed import Options, typed


@pytest.mark.parametrize("kind", ["date", "datetime(6)", "timestamp(3)", "time(6)"])
@pytest.mark.parametrize("zero_dates", ["error", "null", "string"])
def test_a_moment_is_parsed_once(kind: str, zero_dates: str) -> None:
    assert typed("v", kind, where="'w'", options=Options(zero_dates=zero_dates)).count("from_json(") == 1
