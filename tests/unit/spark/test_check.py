"""What ``--check`` of the programs on Spark prints of this machine; a test of secured servers has the rest."""

from pathlib import Path

import pytest

from cdc.service.command_line import CheckList
from cdc.spark.job.check import check_audit, check_folder, check_runtime
from cdc.spark.job.options import parse_options


def test_a_folder_that_cannot_be_written_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items, file = CheckList(), tmp_path / "file"
    file.touch()
    for folder in (tmp_path, tmp_path / "new" / "newer", "hdfs://name/lake", file, file / "below"):
        check_folder(items, folder, option="--to")
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "ok", "ok", "note", "problem", "problem",
    ]  # fmt: skip
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_machine_without_java_or_jars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items = CheckList()
    check_runtime(items, {"PATH": str(tmp_path)})
    assert "problem  [CDC-JAVA] there is no Java" in capsys.readouterr().out


def test_each_problem_of_an_audit_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("x = 1")
    options = ("--report", str(file), "--accept", str(file), "--from-lake", str(file), "--state", str(file), "--check")
    profiles = ("--leader", str(tmp_path / "none.toml"), "--follower", str(tmp_path / "none.toml"))
    assert check_audit(parse_options("cdc-audit", [*profiles, *options])) == 2
    printed = capsys.readouterr().out
    for code in ("CDC-CHECK-FOLDER", "CDC-AUDIT-ACCEPT-FILE", "CDC-FILE-UNREADABLE"):
        assert f"problem  [{code}]" in printed
    for option in ("--report", "--state", "--from-lake"):
        assert f"option {option} {file}" in printed
