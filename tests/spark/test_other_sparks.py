"""The programs on the other versions of Spark: each in an environment of its own, into which pip installs it."""

import os
import re
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
TOOLS = {"deltalake", "hypothesis", "matplotlib", "pyarrow", "pyiceberg", "pytest", "pytest-xdist", "pyyaml"}
# Tables, feeds and streams, lakes in each format that the version has, seeds, verdicts, and audits by the program. The
# tests of small audits (test_tiny) count jobs: Spark 4.2 has one more.
TESTS = (
    "tests/spark/test_private_names.py", "tests/spark/test_change_feed.py", "tests/spark/test_tables.py",
    "tests/spark/test_tables_page.py", "tests/spark/test_lake.py", "tests/spark/test_lake_names.py",
    "tests/spark/test_delta_feed.py", "tests/spark/test_iceberg_catalogs.py", "tests/spark/test_seed.py",
    "tests/spark/test_cdc_audit.py", "tests/spark/test_state_layers.py", "tests/spark/test_verdicts.py",
    "tests/unit/service/test_spark_packages.py", "tests/unit/spark/test_connector.py",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.integration
@pytest.mark.parametrize("version", ["4.1.4", "4.2.1"])
def test_the_programs_on_another_spark(tmp_path: Path, version: str) -> None:
    """`make test` has test_private_names, test_tables and the others on the version that the extra `dev` names."""
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin/python"
    tools = [each for each in EXTRAS["dev"] if re.split(r"[<>=\[]", each)[0] in TOOLS]
    assert len(tools) == len(TOOLS)
    install = [python, "-m", "pip", "install", "--quiet", "--editable", f"{ROOT}[spark]", f"pyspark=={version}", *tools]
    subprocess.run(install, check=True)
    own = {"PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", "CDC_REQUIRE_INTEGRATION": "1"}
    environment = {name: each for name, each in os.environ.items() if not name.startswith("PYTEST_")} | own
    command = [python, "-m", "pytest", "-q", "--basetemp", tmp_path / "of-tests", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout[-2000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
