"""Puts a proxy before the shared broker. A closed proxy looks to clients like a broker that is down."""

from typing import Self

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.process import free_port
from tests.harness.kafka_proxy import KafkaProxy

__all__ = ["RemoteKafka"]


class RemoteKafka(Kafka):
    """``kafka`` behind a proxy. ``kill`` cuts all connections and refuses new ones, ``start`` lets clients in again."""

    def __init__(self, kafka: Kafka) -> None:
        super().__init__(kafka.folder, port=free_port())
        self._broker = kafka
        self._proxy: KafkaProxy | None = None

    def start(self, *, outlive: bool = False) -> Self:
        """Accepts connections again, unless it already does."""
        if self._proxy is None:
            self._proxy = KafkaProxy([self._broker.port], at=self.port)
            self._proxy.__enter__()
        return self

    def stop(self) -> None:
        self.kill()

    def kill(self) -> None:
        """Cuts all connections, and refuses new ones."""
        if self._proxy is not None:
            self._proxy.__exit__()
            self._proxy = None

    def running(self) -> bool:
        return self._proxy is not None
