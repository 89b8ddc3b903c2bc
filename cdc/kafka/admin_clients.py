"""Lends admin clients that are connected already: connecting takes longer than most requests."""

import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from confluent_kafka.admin import AdminClient

from cdc.service.logs import LIBRDKAFKA

__all__ = ["admin_client"]

_ANSWER_SECONDS = 10.0
# A start and a reconnection send a dozen requests within a second; a program that sends one request a minute may
# connect for each.
_KEPT_SECONDS = 30.0
# By default librdkafka waits up to 10 s before it tries a broker again that was unreachable.
_RECONNECT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}
_clients: dict[Hashable, tuple[AdminClient, float]] = {}
_lock = Lock()


@contextmanager
def admin_client(properties: Mapping[str, Any]) -> Iterator[AdminClient]:
    """Lends a client of the brokers in ``properties`` (librdkafka's), for one or more requests. After an error in the
    block the client is not lent again. Raises KafkaException if no broker answers.
    """
    key = tuple(sorted((name, str(value)) for name, value in properties.items()))
    with _lock:
        client, since = _clients.pop(key, (None, 0.0))
    if client is None or time.monotonic() > since + _KEPT_SECONDS:
        client, since = AdminClient(_RECONNECT | dict(properties), logger=LIBRDKAFKA), time.monotonic()
        # One client in fifteen waits 3 s for its first request if that request is list_offsets (librdkafka 2).
        client.list_topics(timeout=_ANSWER_SECONDS)
    yield client
    with _lock:
        _clients[key] = client, since
