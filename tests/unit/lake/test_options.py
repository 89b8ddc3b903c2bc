"""The command line of cdc-lake, and times in that of cdc-audit."""

from pathlib import Path

import pytest

from cdc.lake.options import parse_options
from cdc.spark.job.options import parse_options as audit_options

AUDIT = ("--leader", "leader.toml", "--follower", "follower.toml", "--report", "report", "--state", "state")


@pytest.mark.parametrize("address", ["s3://bucket/lake", "s3a:/bucket", "hdfs://host:9000/lake"])
def test_addresses_are_no_paths(address: str) -> None:
    assert parse_options(["leader.toml", "--to", address]).to == address


@pytest.mark.parametrize("folder", ["lake", "/mnt/lake", "a:b", "./s3:/x"])
def test_any_folder_may_have_a_lake(folder: str) -> None:
    assert parse_options(["leader.toml", "--to", folder]).to == Path(folder)


@pytest.mark.parametrize("address", ["file:///mnt/a%20b", "file:/mnt/a%20b", "file://localhost/mnt/a%20b"])
def test_an_address_of_this_machine_is_a_path(address: str) -> None:
    assert parse_options(["leader.toml", "--to", address]).to == Path("/mnt/a b")


@pytest.mark.parametrize("form", ["iceberg", "parquet"])
def test_only_delta_has_a_change_feed(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert parse_options(["leader.toml", "--to", "lake", "--change-feed"]).change_feed
    with pytest.raises(SystemExit):
        parse_options(["leader.toml", "--to", "lake", "--format", form, "--change-feed"])
    assert "--change-feed needs --format delta" in capsys.readouterr().err


def test_only_iceberg_has_a_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["leader.toml", "--to", "lake", "--catalog", "catalog.toml"]
    assert parse_options([*given, "--format", "iceberg"]).catalog == Path("catalog.toml")
    with pytest.raises(SystemExit):
        parse_options(given)
    assert "--catalog needs --format iceberg" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["0", "-1", "inf", "nan", "1e99", "soon"])
def test_a_time_is_a_number_for_which_a_program_can_wait(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--interval", "--maintain"):
        with pytest.raises(SystemExit):
            parse_options(["leader.toml", "--to", "lake", "--follow", f"{option}={given}"])
        assert f"argument {option}: '{given}' is not a number above 0" in capsys.readouterr().err
    for option in ("--watch", "--max-age"):
        with pytest.raises(SystemExit):
            audit_options("cdc-audit", [*AUDIT, f"{option}={given}"])
        assert f"argument {option}: '{given}' is not a number above 0" in capsys.readouterr().err


def test_only_a_lake_that_follows_is_maintained(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["leader.toml", "--to", "lake", "--maintain", "0.5"]
    assert parse_options([*given, "--follow"]).maintain == 0.5
    with pytest.raises(SystemExit):
        parse_options(given)
    assert "--maintain needs --follow" in capsys.readouterr().err
