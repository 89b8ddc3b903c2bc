"""The log: what a field looks like in it."""

import json
import logging

import pytest

from cdc.position import Position
from cdc.service import event, setup_logging
from cdc.uri import Uri


def test_fields_in_json_are_numbers_or_the_text_of_the_other_form(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging(level="info", form="json")
    fields = {"position": Position("binlog.000001", 4), "uri": Uri("srv", "d", "t"), "count": 7, "none": None}
    event(logging.getLogger("cdc.test"), "conflict", **fields)
    body = json.loads(capsys.readouterr().err)
    assert body | fields | {"position": "binlog.000001:4", "uri": "flv://srv/d/t"} == body
    assert body["event"] == "conflict"
