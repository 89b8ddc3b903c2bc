"""Settings of a leader that change the form of its binlog and not its meaning: as data, for tests over all of them."""

import os
from dataclasses import dataclass

import pytest

__all__ = ["MATRIX", "LeaderSettings", "across_settings", "gtid_options"]


def gtid_options(mode: str) -> tuple[str, str]:
    """mysqld's options for ``gtid_mode`` ON or OFF."""
    return f"--gtid-mode={mode}", f"--enforce-gtid-consistency={mode}"


@dataclass(frozen=True)
class LeaderSettings:
    """One combination. ``row_events`` is "whole", or "split": a statement's rows in many events, with the statement's
    text before.
    """

    compression: str = "OFF"
    checksum: str = "CRC32"
    gtids: str = "ON"
    row_events: str = "whole"

    @property
    def name(self) -> str:
        """The name for topics and tests."""
        return f"{self.compression}-{self.checksum}-{self.gtids}-{self.row_events}"

    @property
    def options(self) -> tuple[str, ...]:
        """mysqld's options; compression is not among them, so that a test can also set it for a session alone."""
        split = ("--binlog-row-event-max-size=256", "--binlog-rows-query-log-events=ON")
        events = split if self.row_events == "split" else ()
        return (f"--binlog-checksum={self.checksum}", *gtid_options(self.gtids), *events)


# The smallest set in which every two values of different settings meet.
MATRIX = (
    LeaderSettings("OFF", "CRC32", "ON", "whole"),
    LeaderSettings("OFF", "NONE", "OFF", "split"),
    LeaderSettings("ON", "CRC32", "OFF", "split"),
    LeaderSettings("ON", "NONE", "ON", "split"),
    LeaderSettings("ON", "NONE", "OFF", "whole"),
)

_TRIED = MATRIX if os.environ.get("CDC_LEADER_SETTINGS") == "all" else MATRIX[:1]

across_settings = pytest.mark.parametrize("settings", _TRIED, ids=lambda given: given.name)
