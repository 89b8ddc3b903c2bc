"""Which versions of servers are named as not tested; docs/deployment.md lists those that are."""

from pathlib import Path

import pytest

from cdc.model.server_version import TESTED, is_tested, logs_cascades, makes_column_references

PAGE = Path(__file__).parents[3] / "docs" / "deployment.md"


@pytest.mark.parametrize(
    ("version", "tested"),
    [
        ("9.7.4-2", True), ("8.0.45-0ubuntu0.24.04.1", True), ("8.0.36", True), ("10.11.14-MariaDB-log", True),
        ("11.8.9-MariaDB-log", True),
        ("8.4.3", False), ("9.6.0", False), ("10.0.1", False), ("11.4.2-MariaDB", False), ("unknown", False),
    ],
)  # fmt: skip
def test_the_series_counts(version: str, tested: bool) -> None:
    assert is_tested(version) == tested


def test_the_page_has_each_series() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| M")]
    for series in TESTED:
        name, number = series.split()
        assert any(row.startswith(f"| {name} | {number}") and "tested" in row for row in rows), series


@pytest.mark.parametrize(
    ("version", "logs"),
    [
        ("9.7.4", True), ("9.6.0", True), ("10.0.1", True), ("", True), ("unknown", True),
        ("9.5.0", False), ("8.0.45-0ubuntu0.24.04.1", False), ("8.4.3", False), ("11.8.9-MariaDB-log", False),
    ],
)  # fmt: skip
def test_which_servers_log_what_foreign_keys_change(version: str, logs: bool) -> None:
    assert logs_cascades(version) == logs


@pytest.mark.parametrize(
    ("version", "makes"),
    [("8.0.45", False), ("8.4.3-log", False), ("9.0.0", True), ("10.11.9-MariaDB", True), ("", None), ("x", None)],
)
def test_which_servers_make_foreign_keys_of_references_in_columns(version: str, makes: bool | None) -> None:
    assert makes_column_references(version) is makes
