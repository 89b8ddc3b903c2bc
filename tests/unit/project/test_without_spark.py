"""Every program tells its help and its version where PySpark is not installed, and what installs it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from cdc.service.java import with_spark

_ALL = """
import sys
from importlib import import_module

sys.modules["pyspark"] = sys.modules["py4j"] = None  # an import of them fails
for main in sys.argv[1].split(","):
    for option in ("--help", "--version"):
        sys.argv = [main, option]
        try:
            status = getattr(import_module(main.partition(":")[0]), main.partition(":")[2])()
        except SystemExit as end:
            status = end.code
        assert not status, main
"""


def test_help_and_version() -> None:
    scripts = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    command = [sys.executable, "-c", _ALL, ",".join(scripts.values())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("usage: ") == done.stdout.count("cdc 0.") == len(scripts)


def test_what_installs_spark_is_no_package_of_ours() -> None:
    """Nobody may get whatever somebody else publishes under our name."""
    assert re.match(rf"{re.escape(sys.executable)} -m pip install '?pyspark[<>=]", with_spark())
    assert "cdc" not in with_spark().removeprefix(sys.executable)
