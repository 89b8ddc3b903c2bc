"""Ports of servers that are killed and started again stay theirs."""

import subprocess
import sys

import pytest

from cdc.errors import UserError
from cdc.sandbox.server import process
from cdc.sandbox.server.process import free_port

OF_ANOTHER_PROCESS = """\
import sys
from cdc.sandbox.server import process
process._RANGE = range(int(sys.argv[1]), int(sys.argv[1]) + 1)
try:
    print(process.free_port())
except process.UserError as error:
    print(error.what)
"""


def test_a_port_is_given_once_even_if_nobody_listens_there(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(process, "_RANGE", range(port, port + 1))
    with pytest.raises(UserError, match="no free port"):
        free_port()
    found = subprocess.run(
        [sys.executable, "-c", OF_ANOTHER_PROCESS, str(port)], capture_output=True, text=True, check=True
    )
    assert found.stdout.startswith("no free port")
