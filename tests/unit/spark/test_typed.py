"""The SQL of typed values parses the JSON of a value once: in a branch of CASE, Spark parses again for each parser."""

import pytest

from cdc.spark.frames.typed import Options, typed


@pytest.mark.parametrize("kind", ["date", "datetime(6)", "timestamp(3)", "time(6)"])
@pytest.mark.parametrize("zero_dates", ["error", "null", "string"])
def test_a_moment_is_parsed_once(kind: str, zero_dates: str) -> None:
    assert typed("v", kind, where="'w'", options=Options(zero_dates=zero_dates)).count("from_json(") == 1


@pytest.mark.parametrize("kind", ["date", "datetime(6)", "timestamp(3)"])
def test_a_moment_in_the_usual_form_is_not_parsed_as_json(kind: str) -> None:
    first, json, _ = typed("v", kind, where="'w'", options=Options()).partition("from_json(")
    assert json and "coalesce(" in first and "regexp_replace(" in first
