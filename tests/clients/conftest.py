"""Shows the lines of all cases as one table, at the end of the run."""

import pytest

from tests.clients.beside import TOLD


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Behind pytest's own summary."""
    if TOLD:
        terminalreporter.section("cases")
        terminalreporter.write_line("\n".join(TOLD))
