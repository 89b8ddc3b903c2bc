"""The command line of cdc-lake."""

from pathlib import Path

import pytest

from cdc.lake.options import parse_options


@pytest.mark.parametrize("address", ["s3://bucket/lake", "s3a:/bucket", "hdfs://host:9000/lake", "file:///lake"])
def test_addresses_are_no_folders(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as error:
        parse_options(["leader.toml", "--to", address])
    assert error.value.code == 2
    assert f"{address!r} is an address" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["lake", "/mnt/lake", "a:b", "./s3:/x"])
def test_any_folder_may_have_a_lake(folder: str) -> None:
    assert parse_options(["leader.toml", "--to", folder]).to == Path(folder)
