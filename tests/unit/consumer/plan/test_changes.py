"""The SQL of changes, as tests/data/changes.txt has it: what a case says is planned, and compared as a whole."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from cdc.consumer.literals.values import DEFAULT, Rounded
from cdc.consumer.plan.planner import Change, Step, in_order
from cdc.consumer.plan.statements import statements
from tests.unit.consumer.plan.test_statements import change

TEXT = (Path(__file__).parents[3] / "data" / "changes.txt").read_text(encoding="utf-8")
CASES = [each.partition("\n") for each in TEXT.split("\n## ")[1:]]
SETTINGS = ("key", "generated", "compared", "modes", "verified", "rounded", "flags")


def images(text: str) -> Iterator[list[Any]]:
    """Rows as JSON, one behind the other."""
    decoder, at = json.JSONDecoder(), text.find("[")
    while at >= 0:
        row, end = decoder.raw_decode(text, at)
        yield [value(each) for each in row]
        at = text.find("[", end)


def value(content: object) -> Any:
    if content == {"Default": None}:
        return DEFAULT
    kinds = {int: "SignedInteger", float: "Float", str: "String"}
    return "Null" if content is None else {kinds[type(content)]: content} if type(content) in kinds else content


def changes(operation: str, text: str, said: dict[str, str]) -> list[Change]:
    key = said.get("key", "a").split()
    images_of_a_row = 2 if operation in ("Update", "Upsert") else 1
    rows = zip(*[images(text)] * images_of_a_row, strict=True)
    of_record = {"Upsert": "Update", "Absent": "Delete"}.get(operation, operation)
    flags = int(said.get("flags", 0))
    return [change(of_record, *each, key=None if key == ["none"] else tuple(key), flags=flags) for each in rows]


def step(operation: str, text: str, said: dict[str, str]) -> Step:
    rounded: dict[str, Rounded] = {}
    if "rounded" in said:
        column, digits, decimals = said["rounded"].split()
        rounded[column] = Rounded("FLOAT UNSIGNED", int(digits), int(decimals))
    verified = frozenset(said.get("verified", "").split())
    made = changes(operation, text, said)
    return Step(operation, made, modes=said.get("modes"), verified=verified, rounded=rounded)


def planned(lines: list[str], said: dict[str, str]) -> Iterator[Step]:
    """The steps of a case, which takes up what it says."""
    for is_step, group in groupby(lines, key=lambda line: line.startswith("step ")):
        records = []
        for line in group:
            word, _, rest = line.partition(" ")
            if word in SETTINGS:
                said[word] = rest
            elif is_step:
                yield step(*rest.split(" ", 1), said)
            else:
                records += [each.record for each in changes(word, rest, said)]
        yield from in_order(records)


@pytest.mark.parametrize(("title", "_", "text"), CASES, ids=[title for title, _, _ in CASES])
def test_a_case(title: str, _: str, text: str) -> None:
    lines = [line for line in text.splitlines() if line and not line.startswith("# ")]
    said: dict[str, str] = {}
    steps = [*planned([line for line in lines if not line.startswith("= ")], said)]
    compared = frozenset(said["compared"].split()) if "compared" in said else None
    generated = frozenset(said.get("generated", "").split())
    comparable = None if compared is None else lambda uri: compared
    found = [*statements(steps, generated=lambda uri: generated, comparable=comparable)]
    assert all(each.changes for each in found if each.rows is not None)
    expected = [line.removeprefix("= ") for line in lines if line.startswith("= ")]
    told = [each.sql.decode() if each.rows is None else f"{each.rows} rows: {each.sql.decode()}" for each in found]
    assert told == expected
