"""Lends admin clients that are already connected, because connecting takes longer than most requests."""

import time
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from confluent_kafka.admin import AdminClient

from cdc.service.logs import LIBRDKAFKA

__all__ = ["admin_client", "require_answer"]

_ANSWER_SECONDS = 10.0
# At its start and after a reconnection, a program sends a dozen requests within a second, and should use one client for
# them. A program that sends one request a minute may connect for each request.
_KEPT_SECONDS = 30.0
# By default librdkafka waits up to 10 s before it tries to reach an unreachable broker again.
_RECONNECT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}
_clients: dict[Hashable, tuple[AdminClient, float]] = {}
_lock = Lock()


@contextmanager
def admin_client(properties: Mapping[str, Any]) -> Iterator[AdminClient]:
    """Lends a client to the ``with`` block, for one or more requests. ``properties`` (librdkafka's) contain the
    brokers. A client is lent again later, unless the block raised an error. Raises KafkaException if no broker answers.
    """
    key = tuple(sorted((name, str(value)) for name, value in properties.items()))
    with _lock:
        client, since = _clients.pop(key, (None, 0.0))
    if client is None or time.monotonic() > since + _KEPT_SECONDS:
        client, since = AdminClient(_RECONNECT | dict(properties), logger=LIBRDKAFKA), time.monotonic()
        # If the first request of a new client is list_offsets, one client in fifteen waits 3 s for the answer
        # (librdkafka 2). So a different request is sent first.
        require_answer(client, _ANSWER_SECONDS)
    yield client
    with _lock:
        _clients[key] = client, since


def require_answer(client: AdminClient, seconds: float) -> None:
    """Raises KafkaException unless a broker answers within ``seconds``. Describing the cluster needs no ACL, and costs
    the same however many topics there are.
    """
    client.describe_cluster(request_timeout=seconds).result()
