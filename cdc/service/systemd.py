"""Reports a program's start, state and end to systemd, if systemd started it (``sd_notify``)."""

import os
import socket
from contextlib import suppress
from typing import Self

from cdc.model.values import visible

__all__ = ["Systemd"]


class Systemd:
    """The socket of systemd at ``address``, the value of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address  # an abstract socket
        self._ready, self._status = False, ""

    @classmethod
    def from_environment(cls) -> Self | None:
        """Returns systemd's socket; None if systemd did not start this process, or if the unit is not of
        ``Type=notify``.
        """
        # The variable is removed, so that no child of this process reports to systemd in its place.
        address = os.environ.pop("NOTIFY_SOCKET", "")
        return cls(address) if address else None

    def report(self, *, ready: bool, status: str) -> None:
        """Reports READY once, and ``status`` each time that it changes."""
        lines = [f"STATUS={visible(status)}"] if status != self._status else []  # a table's name may have line breaks
        if ready and not self._ready:
            lines.insert(0, "READY=1")
        if self._send(lines):
            self._ready, self._status = self._ready or ready, status

    def stopping(self) -> None:
        """Reports that the program is ending."""
        self._send(["STOPPING=1"])

    def _send(self, lines: list[str]) -> bool:
        """Sends a report; returns whether systemd has received it. A report that can't be delivered is dropped, since a
        program works without systemd as well; the next report contains its content again.
        """
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as notify:
            if lines:
                notify.setblocking(False)
                notify.sendto("\n".join(lines).encode(), self._address)
            return True
        return False
