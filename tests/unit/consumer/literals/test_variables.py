"""Large BLOBs reach the follower in parts: put together they are the BLOB, and each statement has a limited size."""

import re
from base64 import b64decode, b64encode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc.consumer.literals.scalars import Variables
from cdc.consumer.plan.planner import Step
from cdc.consumer.plan.statements import statements
from cdc.large_rows import BlobFile, StoredBlob
from tests.unit.consumer.plan.test_statements import change, n

SMALLEST = 104


def stored(data: bytes) -> StoredBlob:
    file = BlobFile()
    file.append(b"another one" + data)
    return StoredBlob(file, 11, len(data), "")


@example([bytes(200), b"x" * 199], 120)
@given(st.lists(st.binary(min_size=1, max_size=300), max_size=3), st.integers(SMALLEST, 150))
def test_the_variables_hold_the_blobs(blobs: list[bytes], size: int) -> None:
    variables = Variables(size)
    image = variables.image([n(1), "Null", *({"Blob": stored(blob)} for blob in blobs), {"Blob": "QQ=="}])
    assert image[:2] == [n(1), "Null"]
    assert image[-1] == {"Blob": "QQ=="}
    held = {}
    for statement in variables.statements():
        assert len(statement) <= size
        name, content = re.fullmatch(rb"SET (@\w+)=FROM_BASE64\('(.*)'\)", statement).groups()  # type: ignore[union-attr]
        assert name not in held
        held[name] = b64decode(content, validate=True)
    for blob, value in zip(blobs, image[2:-1], strict=True):
        names = re.search(r"CONCAT\((.*?)\)", value["Blob"].expression)
        assert names is not None
        assert b"".join(held[name.encode()] for name in names[1].split(",")) == blob
    emptied = b"".join(variables.emptying())
    assert set(re.findall(rb"@\w+(?==NULL)", emptied)) == set(held)


@pytest.mark.parametrize("operation", ["Add", "Upsert", "Update", "Delete"])
def test_only_images_that_are_written_are_sent(operation: str) -> None:
    old, new = {"Blob": stored(b"old")}, {"Blob": stored(b"new")}
    images = [[n(1), each] for each, without in ((old, "Add"), (new, "Delete")) if operation != without]
    wanted = Step(operation, [change("Update" if operation == "Upsert" else operation, *images)])
    made = [each.sql for each in statements([wanted], generated=lambda _: frozenset(), has_stored=True)]
    assert b64encode(b"old") not in b"".join(made)
    if operation == "Delete":
        assert len(made) == 1
    else:
        assert made[0] == b"SET @cdc_0_0=FROM_BASE64('%b')" % b64encode(b"new")
        assert b"COALESCE(CONCAT(@cdc_0_0)," in made[1]
        assert made[2] == b"SET @cdc_0_0=NULL"
