"""The units of systemd: it reads them without a warning, and starts again what a new start can help."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
TOOL = shutil.which("systemd-analyze")
needs_systemd = pytest.mark.skipif(TOOL is None, reason="there is no systemd-analyze on PATH")


@pytest.fixture
def installed(tmp_path: Path) -> list[Path]:
    """The units with the programs of this environment, since systemd looks whether they are there."""
    found = []
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace("/opt/cdc/bin", str(Path(sys.executable).parent))
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
        found.append(tmp_path / unit.name)
    return found


@needs_systemd
def test_systemd_finds_no_fault(installed: list[Path]) -> None:
    assert TOOL
    done = subprocess.run([TOOL, "verify", "--man=no", *installed], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.stem)
def test_systemd_calls_the_units_hardened(unit: Path) -> None:
    assert TOOL
    tool = [TOOL, "security", "--offline=yes", "--threshold=20", unit]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


def test_what_only_somebody_can_mend_is_not_started_again() -> None:
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    documented = re.search(r"^RestartPreventExitStatus=.*$", page, re.MULTILINE)
    assert documented
    assert {unit.stem for unit in UNITS} == {"cdc-producer@", "cdc-consumer@", "cdc-audit@"}
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        assert "Restart=on-failure" in text
        assert (documented[0] in text) == (unit.stem != "cdc-audit@")
