"""No hint names a package that no registry has, and who has no PySpark can read the help of each program."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def test_no_hint_installs_a_package_that_is_not_published() -> None:
    files = [*ROOT.glob("cdc/**/*.py"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*"), ROOT / "README.md"]
    assert [path for path in files if path.is_file() and "cdc-mysql[" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("option", ["--help", "--version"])
@pytest.mark.parametrize("module", ["cdc.lake.__main__", "cdc.spark.__main__", "cdc.seed.__main__"])
def test_help_needs_no_spark(module: str, option: str) -> None:
    code = f"import sys; sys.modules['pyspark'] = None; sys.argv[1:] = ['{option}']; import {module} as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
