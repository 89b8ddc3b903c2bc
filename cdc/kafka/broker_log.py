"""Finds out why brokers do not answer: connects once more and takes the reason from librdkafka's log, since its errors
have none.
"""

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

__all__ = ["BrokerLog", "Reason", "reason"]

_RUNNING = "are the brokers running, at that address?"
_SECURITY = "check security.protocol, sasl.* and ssl.* in [kafka.librdkafka] against the brokers' listener"
_ASK_SECONDS = 2.0
_LOG_INFO = 6
_STATE = re.compile(r" \(after \d+ms in state \w+.*?\)")
# A broker closes a connection that does not start as its listener expects; librdkafka logs that, but not as an error.
_CLOSED = re.compile(r"[^ ]+: Disconnected.*")


@dataclass(frozen=True, slots=True)
class Reason:
    """The last reason that librdkafka logged, with a hint; ``refused``: waiting alone does not help."""

    text: str
    hint: str = _RUNNING
    refused: bool = False


class BrokerLog(logging.Handler):
    """Collects the log of one client, which is created with the properties ``settings`` and with ``logger``."""

    def __init__(self) -> None:
        super().__init__()
        self.settings: dict[str, Any] = {"error_cb": self._on_error, "log_level": _LOG_INFO}
        self.logger = logging.Logger("librdkafka")
        self.logger.addHandler(self)
        self.reason: Reason | None = None
        self.all_down = False

    def emit(self, record: logging.LogRecord) -> None:
        """Notes that a broker closed a connection, unless an error has given a reason already."""
        closed = _CLOSED.search(record.getMessage())
        if closed and self.reason is None:
            text = f"{_STATE.sub('', closed[0])}; it may want another security.protocol"
            self.reason = Reason(text, f"{_RUNNING} If they are, {_SECURITY}")

    def _on_error(self, error: KafkaError) -> None:
        code, text = error.code(), _STATE.sub("", error.str())
        if code == KafkaError._ALL_BROKERS_DOWN:
            self.all_down = True
        elif code in (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED):
            self.reason = Reason(text, _SECURITY, refused=True)
        elif code == KafkaError._SSL or "SSL handshake" in text:
            # A broker that shuts down, or a proxy in front of it, interrupts a handshake too; that may pass.
            self.reason = Reason(text, _SECURITY, refused="verif" in text)
        elif self.reason is None or not self.reason.refused:
            self.reason = Reason(text)


def reason(properties: Mapping[str, Any]) -> Reason | None:
    """The reason why the brokers in ``properties`` (librdkafka's) do not answer, found by connecting to them once more.

    None if librdkafka logs no reason: they answer now, or packets are lost on the way.
    """
    log = BrokerLog()
    client = AdminClient(dict(properties) | log.settings, logger=log.logger)
    give_up = time.monotonic() + _ASK_SECONDS
    while time.monotonic() < give_up and not (log.reason and (log.reason.refused or log.all_down)):
        client.poll(0.1)
    return log.reason
