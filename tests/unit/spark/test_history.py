"""The history of verdicts: kept beside a state, bounded, and drawn on the page."""

from dataclasses import replace
from pathlib import Path

import pytest

from cdc.spark.folders import LocalFolder
from cdc.spark.report.renderers import page
from cdc.spark.state import folder
from cdc.spark.state.folder import PastVerdict, remembered, require_state_folder
from tests.generators import audits
from tests.unit.spark.test_document import Page

FIRST = PastVerdict("2026-11-21T17:31:54+00:00", 0, 7, 0, 0, 0, 0)
SECOND = replace(FIRST, at="2026-11-21T18:31:54+00:00", exit_status=1, drifted_rows=12, schema_drift=1, accepted=3)


def test_verdicts_are_kept_in_order_and_broken_lines_are_left_out(tmp_path: Path) -> None:
    assert remembered(LocalFolder(tmp_path), FIRST) == [FIRST]
    with (tmp_path / "history.jsonl").open("a") as file:
        file.write('{"at": "2026\n[]\n{"x": 1}\n')
    assert remembered(LocalFolder(tmp_path), SECOND) == [FIRST, SECOND]
    assert (tmp_path / "history.jsonl").stat().st_mode & 0o777 == 0o600
    assert remembered(LocalFolder(tmp_path), FIRST) == [FIRST, SECOND, FIRST]
    # An audit that could not judge leaves no state beside it.
    require_state_folder(LocalFolder(tmp_path))


def test_the_oldest_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "_KEPT", 2)
    for each in (FIRST, SECOND, SECOND):
        remembered(LocalFolder(tmp_path), each)
    assert len((tmp_path / "history.jsonl").read_text().splitlines()) == 2


def test_the_page_shows_them_over_time() -> None:
    verdicts = [FIRST, SECOND, replace(FIRST, at="2026-11-21T19:31:54+00:00", exit_status=2, sequence=None)]
    html = page(audits.clean(), verdicts)
    read = Page(html)
    assert not read.faults
    assert "3 audits on this state: no drift 1, drift 1, could not judge 1." in read.text
    assert "2026-11-21 18:31:54 UTC: drift at sequence 7: 13 drifted, 3 accepted" in html
    assert html.count('class="verdict ') == 3
    assert "Verdicts so far" not in page(audits.clean(), verdicts[:1])
