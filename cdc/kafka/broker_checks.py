"""Sends the requests of health checks and metrics to the brokers, over a connection that reads and writes no
records."""

from collections.abc import Collection
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from cdc.errors import CdcError
from cdc.kafka.admin_clients import require_answer
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import BrokerLog
from cdc.kafka.known_topics import topics_shown
from cdc.model.commit_entry import Commits
from cdc.service.http_endpoint import Check

__all__ = ["Brokers"]

_ANSWER_SECONDS = 2.0
# After an outage the health check must soon succeed again, so librdkafka retries each address at least this often.
_RECONNECT = {"reconnect.backoff.max.ms": 1000}


class Brokers:
    """A connection to the brokers in ``properties`` (librdkafka's), which the first call opens."""

    def __init__(self, properties: dict[str, Any]) -> None:
        self._properties = properties | _RECONNECT
        self._log = BrokerLog()
        self._admin: AdminClient | None = None

    def check(self, topics: Collection[str]) -> Check:
        """Checks whether a broker answers, and whether each partition of ``topics`` has a leader."""
        try:
            require_answer(self._client(), _ANSWER_SECONDS)
            known = topics_shown(self._client(), topics, seconds=_ANSWER_SECONDS)
        except KafkaException as error:
            self._client().poll(0)  # runs the callbacks in which librdkafka logs why a broker does not answer
            why = self._log.reason.text if self._log.reason else error.args[0].str()
            return Check("kafka", False, f"no answer: {why}")
        self._log.reason = None
        for name in sorted(topics):
            if name not in known:
                return Check("kafka", False, f"there is no topic {name}")
            without = [number for number, partition in known[name].partitions.items() if partition.leader is None]
            if without:
                return Check("kafka", False, f"topic {name}: partition {without[0]} has no leader")
        return Check("kafka", True, f"all partitions have a leader: {', '.join(sorted(topics)) or 'none asked about'}")

    def commits(self, topic: str) -> Commits | None:
        """Returns the newest entry of the commit log ``topic``, with the time at which the producer wrote it.

        Returns None if there is no entry or the brokers do not answer; the health check reports the reason.
        """
        if not self.check([topic]).ok:
            return None
        try:
            return newest_commits(self._properties, topic)
        except (KafkaException, CdcError):
            return None

    def next_sequence(self, commits: str) -> int | None:
        """Returns the sequence after the last readable record, from the newest entry of the topic ``commits``; None if
        there is no entry or the brokers do not answer.
        """
        newest = self.commits(commits)
        return newest.next_sequence if newest else None

    def _client(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient(self._properties | self._log.settings, logger=self._log.logger)
        return self._admin
