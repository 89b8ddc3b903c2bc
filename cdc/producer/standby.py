"""Lets a producer wait while another producer of the same topic and leader works (profile key producer.standby), and
elects the producer that works.
"""

import threading
import time
from collections.abc import Callable, Mapping
from threading import Event
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, TopicPartition

from cdc.config.profile import Profile
from cdc.errors import CdcError, Disconnected
from cdc.kafka.errors import NO_TOPIC, open_error, read_error
from cdc.producer.metrics import ProducerMetrics
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.service.logs import LIBRDKAFKA
from cdc.service.retry import Retry

__all__ = ["Election", "Standby", "group_of"]

# Elects, by a Kafka consumer group, one of several programs that were started for the same work.
#
# The candidates are the members of a consumer group that subscribes to one topic with one partition. Kafka assigns the
# partition to one member, and after its death to another member (Kafka documentation, "Consumer group protocol"). The
# assignment alone does not keep a former owner from writing, because a stopped process learns late that it has lost the
# partition: the elected program must fence its predecessor.

_GROUP_POLL_SECONDS = 0.2
# The shortest session timeout that brokers accept by default (group.min.session.timeout.ms).
_SESSION_MS, _HEARTBEAT_MS = 6_000, 1_000


class Election:
    """A candidate in the group ``group``, whose members subscribe to ``topic``. A thread answers the group's
    coordinator until ``close``.
    """

    def __init__(self, consumer: Consumer, topic: str, group: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._group = group
        self._elected = threading.Event()
        self._undisturbed = threading.Event()
        self._closed = threading.Event()
        self._error: CdcError | None = None
        consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._lost, on_lost=self._lost)
        self._thread = threading.Thread(target=self._run, name="election", daemon=True)
        self._thread.start()

    @classmethod
    def join(cls, properties: Mapping[str, Any], *, topic: str, group: str) -> Self:
        """Joins the group. ``properties`` are librdkafka's, and may set another session timeout; the topic must
        exist.
        """
        usual = {"session.timeout.ms": _SESSION_MS, "heartbeat.interval.ms": _HEARTBEAT_MS}
        own = {
            "group.id": group,
            # With other strategies a program that joins may take the partition from the member that has it.
            "partition.assignment.strategy": "cooperative-sticky",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",  # without meaning here, since no message is read
            "allow.auto.create.topics": False,
        }
        return cls(Consumer(usual | dict(properties) | own, logger=LIBRDKAFKA), topic, group)

    @property
    def elected(self) -> bool:
        """Whether this program has stayed elected since ``wait`` returned, as far as it knows; false if it lost the
        election and won it again, since another program may have worked meanwhile.
        """
        return self._undisturbed.is_set() and self._elected.is_set()

    def wait(self, stop: threading.Event) -> bool:
        """Waits until this program is elected; returns False if ``stop`` is set before.

        Raises UserError or PromiseError if the group or the topic can't be read, and Disconnected if the client failed.
        """
        while not stop.is_set():
            if self._error is not None:
                raise self._error
            self._undisturbed.set()
            if self._elected.wait(_GROUP_POLL_SECONDS):
                return True
        return False

    def close(self) -> None:
        """Leaves the group, so that another member is elected at once."""
        self._closed.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        where = f"topic {self._topic}"
        while not self._closed.is_set():
            try:
                message = self._consumer.poll(_GROUP_POLL_SECONDS)
            except KafkaException as failure:
                text = failure.args[0].str()
                self._error = Disconnected(
                    f"Kafka's client must start again: {text}", code="CDC-KAFKA-GONE", where=where
                )
                self._depose()
                return
            error = message.error() if message is not None else None
            # The broker perhaps does not know the new topic yet.
            if error is not None and error.code() not in NO_TOPIC:
                self._error = read_error(error, where, group=self._group)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Takes the partition, but reads no message from it."""
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        if partitions:
            self._elected.set()

    def _lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if partitions:
            self._depose()

    def _depose(self) -> None:
        self._undisturbed.clear()
        self._elected.clear()


_NOTICE_SECONDS = 10.0  # within this time a former owner of the group's partition learns that it has lost the partition
_POLL_SECONDS = 0.1


def group_of(profile: Profile) -> str:
    """Returns the consumer group of the producers that stand by for one another."""
    return f"cdc-producer:{profile.kafka.topic}:{profile.mysql_resource_name}"


class Standby:
    """Takes part in the election for a producer; does nothing unless the profile has producer.standby.

    The elected producer still fences its predecessor when it opens its sink. So exactly-once does not depend on the
    election, which only decides which producer tries to write.
    """

    def __init__(
        self, profile: Profile, topics: TopicAdmin, metrics: ProducerMetrics, retry: Retry, log: Callable[..., None]
    ) -> None:
        self._wanted = profile.producer.standby
        self._group = group_of(profile)
        self._topics = topics
        self._metrics = metrics
        self._retry = retry
        self._log = log
        self._election: Election | None = None

    def waited(self, stop: Event) -> bool:
        """Waits until this producer is elected, or ``stop`` is set; returns whether it had to wait.

        Raises Disconnected if the brokers do not answer, and UserError if they refuse.
        """
        if not self._wanted:
            return False
        election = self._election or self._join()
        if election.elected:
            return False
        self._metrics.standby = True
        self._log("standby: waits until no other producer of this topic works", group=self._group)
        try:
            if election.wait(stop):
                self._log("this producer works now")
                self._retry.success()
        except CdcError:
            self.close()
            self._election = None  # the next attempt joins with a new client
            raise
        finally:
            self._metrics.standby = False
            # Another producer may have written entries during the wait. The next sink would refuse these entries if
            # this producer still counted as having written before.
            self._retry.succeeded = False
        return True

    def has_lost(self, stop: Event) -> bool:
        """Whether another candidate was elected in place of this producer; waits some seconds, because a producer that
        was stopped for a while learns late of the election.
        """
        give_up = time.monotonic() + _NOTICE_SECONDS
        while self._election is not None and self._election.elected:
            if time.monotonic() > give_up or stop.wait(_POLL_SECONDS):
                return False
        return self._election is not None

    def close(self) -> None:
        """Leaves the election, so that another candidate is elected at once."""
        if self._election is not None:
            self._election.close()

    def _join(self) -> Election:
        names, properties = self._topics.names, self._topics.properties
        try:
            self._topics.require()
        except KafkaException as error:
            raise open_error(error, names.topic, properties, answered=False) from None
        self._election = Election.join(properties, topic=names.commits, group=self._group)
        # The wait may take weeks: failures before it do not count for the attempts after it.
        self._retry.connected()
        return self._election
