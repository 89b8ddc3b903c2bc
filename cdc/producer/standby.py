"""Lets a producer wait while another producer of the same topic and leader works (profile key producer.standby)."""

import time
from collections.abc import Callable
from threading import Event

from confluent_kafka import KafkaException

from cdc.config.profile import Profile
from cdc.errors import CdcError
from cdc.kafka.election import Election
from cdc.kafka.errors import open_error
from cdc.producer.metrics import ProducerMetrics
from cdc.producer.sink.topic_admin import TopicAdmin
from cdc.service.retry import Retry

__all__ = ["Standby", "group_of"]

_NOTICE_SECONDS = 10.0  # within this time a former owner of the group's partition learns that it has lost the partition
_POLL_SECONDS = 0.1


def group_of(profile: Profile) -> str:
    """Returns the consumer group of the producers that stand by for one another."""
    return f"cdc-producer:{profile.kafka.topic}:{profile.mysql_resource_name}"


class Standby:
    """The part of a producer in the election of the one that works; does nothing unless the profile has
    producer.standby.

    The elected producer still fences its predecessor when it opens its sink, so the election is not what exactly once
    rests on: it decides which producer tries.
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

        Raises Disconnected if the brokers do not answer, UserError if they refuse.
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
            # Another producer may have written since this one did, and is no rival now.
            self._retry.succeeded = False
        return True

    def has_lost(self, stop: Event) -> bool:
        """Whether another candidate was elected in place of this producer; waits some seconds for that, because a
        producer that was stopped for a while learns it late.
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
        # The wait may take weeks, and what failed before it is no failure of the attempts after it.
        self._retry.connected()
        return self._election
