"""A broker that others use, at an address at which nobody answers for a while: as a broker that is down, to clients."""

from typing import Self

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.ports import free_port
from tests.harness.kafka_proxy import KafkaProxy

__all__ = ["RemoteKafka"]


class RemoteKafka(Kafka):
    """``kafka`` behind a proxy. ``kill`` cuts all connections and refuses new ones, ``start`` lets clients in again."""

    def __init__(self, kafka: Kafka) -> None:
        super().__init__(kafka.folder, port=free_port())
        self._broker = kafka
        self._proxy: KafkaProxy | None = None

    def start(self, *, outlive: bool = False) -> Self:
        """Answers from now on, if it does not yet."""
        if self._proxy is None:
            self._proxy = KafkaProxy([self._broker.port], at=self.port)
            self._proxy.__enter__()
        return self

    def stop(self) -> None:
        self.kill()

    def kill(self) -> None:
        """Answers nobody from now on."""
        if self._proxy is not None:
            self._proxy.__exit__()
            self._proxy = None

    def running(self) -> bool:
        return self._proxy is not None
