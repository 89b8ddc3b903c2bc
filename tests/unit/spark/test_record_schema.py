"""The schema of a record's JSON: each reader names the fields that it needs."""

from cdc.spark.input.records import json_schema


def test_fields_in_fields() -> None:
    assert json_schema("sequence", "transaction.id", "operation.Copy.after", "operation.Query") == (
        "sequence BIGINT, transaction STRUCT<id: STRING>, "
        "operation STRUCT<Query: STRING, Copy: STRUCT<after: STRUCT<cols: ARRAY<STRING>>>>"
    )


def test_a_field_has_all_that_it_contains() -> None:
    whole = json_schema("bn_file", "transaction")
    parts = (
        "bn_file.fileName",
        "bn_file.offset",
        *(f"transaction.{name}" for name in ("id", "index", "last", "ts_us")),
    )
    assert whole == json_schema(*parts)
    assert json_schema("bn_file") == "bn_file STRUCT<fileName: STRING, offset: BIGINT>"


def test_a_name_is_not_the_beginning_of_another() -> None:
    assert json_schema("key") == "key ARRAY<STRING>"
    assert json_schema("operation.Co") == ""
