"""Asks the brokers whether they answer (for health checks and metrics), and what our user may do."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from cdc.config.profile import Kafka
from cdc.errors import CdcError, UserError
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import NO_TOPIC, BrokerLog, question_error
from cdc.kafka.topics import admin_client, reconnecting, require_answer, topics_shown
from cdc.model.commit_entry import Commits
from cdc.service.command_line import CheckList
from cdc.service.http_endpoint import Check

__all__ = ["Brokers", "Rights", "check_topics", "missing_rights"]

_ANSWER_SECONDS = 2.0
# After an outage the health check must soon succeed again, so librdkafka retries each address at least this often
# unless the profile has other intervals.
_RECONNECT = {"reconnect.backoff.max.ms": 1000}


class Brokers:
    """Checks the brokers, and reads the newest entry of a commit log. The first check opens a connection that later
    checks use again. ``properties`` are librdkafka's properties, with the brokers' addresses."""

    def __init__(self, properties: dict[str, Any]) -> None:
        self._properties = reconnecting(properties, _RECONNECT)
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


# Queries the brokers for the operations that our user may do on topics and consumer groups; does none of these
# operations.

_RIGHTS_SECONDS = 10.0
_LISTED = "docs/deployment.md lists the ACLs of each program"

Rights = Mapping[str, Collection[str]]
"""Maps the names of topics, or of groups, to the operations that a program needs on each."""


def check_topics(items: CheckList, kafka: Kafka, *, group: str) -> None:
    """Prints whether a program that only reads can read the topics of ``kafka``, with consumer groups whose names begin
    with ``group``.
    """
    topics = dict.fromkeys(kafka.topics().first, ("READ",))
    with items.noting():
        problems = list(missing_rights(kafka.properties(), topics=topics, groups={group: ("READ",)}))
        for error in problems:
            items.problem(error)
        if not problems:
            items.fine(f"Kafka {kafka.bootstrap_servers} answers, and {' and '.join(topics)} can be read")


def missing_rights(properties: Mapping[str, Any], *, topics: Rights, groups: Rights) -> Iterator[CdcError]:
    """Yields an error for each topic that is missing, and for each operation that an ACL of the brokers does not allow.

    Brokers without an authorizer allow everything. Raises UserError if the brokers do not answer.
    """
    where = f"topic {min(topics)}" if topics else str(properties["bootstrap.servers"])
    try:
        with admin_client(properties) as admin:
            yield from _of_topics(admin, properties, topics)
            yield from _of_groups(admin, groups)
    except KafkaException as error:
        raise question_error(error.args[0], properties, where=where) from None


def _of_topics(admin: AdminClient, properties: Mapping[str, Any], topics: Rights) -> Iterator[CdcError]:
    options: dict[str, Any] = {"include_authorized_operations": True, "request_timeout": _RIGHTS_SECONDS}
    answers = admin.describe_topics(TopicCollection(list(topics)), **options) if topics else {}
    for name, answer in sorted(answers.items()):
        try:
            allowed = answer.result().authorized_operations
        except KafkaException as error:
            yield question_error(error.args[0], properties, where=f"topic {name}")
        else:
            yield from _lacking(topics[name], allowed, what="topic", name=name)


def _of_groups(admin: AdminClient, groups: Rights) -> Iterator[CdcError]:
    options: dict[str, Any] = {"include_authorized_operations": True, "request_timeout": _RIGHTS_SECONDS}
    answers = admin.describe_consumer_groups(list(groups), **options) if groups else {}
    for name, answer in sorted(answers.items()):
        try:
            allowed = answer.result().authorized_operations
        except KafkaException as error:
            # Newer brokers answer with an error for a group that no client has used yet.
            if error.args[0].code() not in NO_TOPIC and "AUTHORIZATION" in error.args[0].name():
                yield _forbidden(groups[name], what="consumer group", name=name)
        else:
            yield from _lacking(groups[name], allowed, what="consumer group", name=name)


def _lacking(
    wanted: Collection[str], allowed: Collection[AclOperation] | None, *, what: str, name: str
) -> Iterator[CdcError]:
    names = {each.name for each in allowed or ()}
    if allowed and "ALL" not in names and (missing := [each for each in wanted if each not in names]):
        yield _forbidden(missing, what=what, name=name)


def _forbidden(operations: Collection[str], *, what: str, name: str) -> UserError:
    return UserError(
        f"Kafka does not allow our user {', '.join(operations)} on the {what}",
        code="CDC-KAFKA-REFUSES",
        where=f"{what} {name}",
        hint=f"the ACL {', '.join(operations)} on the {what} is missing; {_LISTED}",
    )
