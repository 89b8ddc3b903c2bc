"""Creates the topics of a leader in Kafka, and checks existing topics before records are written to them.

Refuses settings with which Kafka would delete messages that the stream needs.
"""

import logging
import time
from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewTopic

from cdc.config.profile import MESSAGE_BYTES
from cdc.config.topic_names import SINGLE, Topics
from cdc.errors import CdcError, Disconnected, UserError
from cdc.kafka import commit_log
from cdc.kafka.errors import NOT_AUTHORIZED, SETTING_REFUSED, write_error
from cdc.kafka.partitions import begin_offsets, end_offsets, led, newest, require_first_only, unended
from cdc.kafka.topics import ANY_TIME, KnownTopic, TopicTimes, admin_client, known_topics
from cdc.model.commit_entry import Entry
from cdc.model.position import Partition
from cdc.service.logs import event

__all__ = [
    "TopicAdmin",
    "TopicMaker",
    "described",
    "few_brokers",
    "note_risks",
    "require_counted",
    "require_kept",
]

_LOG = logging.getLogger("cdc.producer")
_ENDLESS = "-1"
_MANY_REPLICAS = 3

Settings = Mapping[str, str]


def described(admin: AdminClient, names: Collection[str]) -> dict[str, Settings]:
    """Queries the settings of all topics with one request. Raises KafkaException.

    If the ACL DescribeConfigs is missing for a topic, a warning is logged, and the topic is left out.
    """
    if not names:
        return {}
    found: dict[str, Settings] = {}
    wanted = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(names)]
    for resource, answer in admin.describe_configs(wanted, request_timeout=_ANSWER_SECONDS).items():
        try:
            found[resource.name] = {key: str(entry.value) for key, entry in answer.result().items()}
        except KafkaException as error:
            if error.args[0].code() not in NOT_AUTHORIZED:
                raise
            _warn("the settings of a topic can't be checked", topic=resource.name, reason=error.args[0].str())
    return found


def require_kept(name: str, settings: Settings, *, is_log: bool, servers: str) -> None:
    """Raises UserError if Kafka would delete records by compaction, or a commit log's entries by age."""
    policies = settings.get("cleanup.policy", "").split(",")
    command = f"kafka-configs.sh --bootstrap-server {servers} --alter --entity-type topics --entity-name {name}"
    if not is_log and "compact" in policies:
        raise UserError(
            "the topic is compacted, which leaves only the newest record of each table",
            code="CDC-TOPIC-LOSES-RECORDS",
            where=f"topic {name}, setting cleanup.policy",
            hint=f"{command} --add-config cleanup.policy=delete; if records are gone by now, consumers stop "
            "at the gap: then name a new topic in kafka.topic and give the follower a fresh copy of the leader",
        )
    if is_log and "delete" in policies and not _endless(settings):
        raise UserError(
            "the commit log would expire, and with it the position to continue from",
            code="CDC-TOPIC-LOSES-RECORDS",
            where=f"topic {name}, setting cleanup.policy",
            hint=f"{command} --add-config cleanup.policy=compact",
        )


def note_risks(name: str, settings: Settings, *, is_log: bool, replicas: int, retention_ms: int) -> None:
    """Logs a warning for each setting that is allowed but risky. ``retention_ms`` is the profile's retention."""
    kept_ms = int(settings.get("retention.ms", _ENDLESS))
    expires = kept_ms >= 0 and (retention_ms < 0 or kept_ms < retention_ms)
    if not is_log and (expires or settings.get("retention.bytes", _ENDLESS) != _ENDLESS):
        kept = {"hours": round(kept_ms / _HOUR_MS, 1)} if kept_ms >= 0 else {}
        _warn("the topic's records expire sooner than the profile's retention_hours", topic=name, **kept,
              bytes=settings.get("retention.bytes", _ENDLESS))  # fmt: skip
    if is_log and "compact" not in settings.get("cleanup.policy", "compact"):
        _warn("the commit log is not compacted: it grows without limit", topic=name)
    if replicas >= _MANY_REPLICAS and settings.get("min.insync.replicas") == "1":
        _warn("a commit waits for only one replica: min.insync.replicas is 1", topic=name, replicas=replicas)


def _endless(settings: Settings) -> bool:
    return all(settings.get(key, _ENDLESS) == _ENDLESS for key in ("retention.ms", "retention.bytes"))


def _warn(what: str, **fields: Any) -> None:
    event(_LOG, what, level=logging.WARNING, **fields)


_ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.05
_HOUR_MS = 3_600_000
_FRESH = "name a new topic in kafka.topic and give the follower a fresh copy of the leader"


class TopicAdmin:
    """Creates and checks the topics ``names``. ``properties`` are the properties for librdkafka's clients.

    The object lives as long as the process. ``suspects`` are topics that contained messages before this producer's
    first record. These messages are records that no entry counts, or a transaction without an end, which the recovery
    of the next sink rolls back. ``transactional`` is true if records are written in Kafka transactions (profile key
    kafka.transactions). ``debezium_prefix`` begins the names of the topics of Debezium's messages; it is empty if none
    are written. ``began_after`` is the entry of the commit log after which this process began to write; None if there
    was none.
    """

    def __init__(
        self,
        properties: dict[str, Any],
        names: Topics,
        *,
        partitions: int,
        replicas: int,
        retention_hours: int,
        min_insync_replicas: int = 0,
    ) -> None:
        self.properties = properties
        self._partitions = partitions
        self._retention_ms = retention_hours * _HOUR_MS or -1
        self._maker = TopicMaker(
            properties, names, replicas=replicas, retention_ms=self._retention_ms, min_insync=min_insync_replicas
        )
        self._checked: set[str] = set()
        self.names = names
        self.times = TopicTimes(properties["bootstrap.servers"])
        self.suspects: set[str] = set()
        self.transactional = True
        self.debezium_prefix = ""
        self.began_after: Entry | None = None

    def require(self) -> None:
        """Creates the commit log if it is missing; in layout "single" also the topic.

        Raises UserError for a topic with messages in several partitions, which keep no total order, and KafkaException.
        """
        known = known_topics(self.properties, self.names.first)
        self._require_first(known)
        self._create(dict.fromkeys(set(self.names.first) - known.keys(), 1))

    def _require_first(self, known: Mapping[str, KnownTopic]) -> None:
        needed = set(self.names.first)
        require_first_only(self.properties, needed)
        self._require_kept(needed, known)

    def require_allowed(self) -> None:
        """Has the brokers check whether ``require`` could create what is missing; nothing is created. Raises the errors
        of ``require``.
        """
        known = known_topics(self.properties, self.names.first)
        self._maker.validate(dict.fromkeys(set(self.names.first) - known.keys(), 1))

    def look(self, resource: str) -> Entry | None:
        """Checks the topics as ``require`` and ``require_matching`` do, but creates nothing; returns the newest
        committed entry.

        Raises the errors of both methods.
        """
        known = known_topics(self.properties, {*self.names.first, self.names.topic})
        self._require_first(known)
        entry = self.newest_entry(resource) if self.names.commits in known else None
        if entry is not None or self.names.topic in known:
            self.require_matching(entry)
        return entry

    def claim(self, names: set[str], *, ours: set[str]) -> dict[str, int]:
        """Creates missing topics, and returns the number of partitions of each topic. To be called before the first
        record is written to a topic.

        ``ours`` are the topics whose records the commit log counts. Raises UserError for a topic that another client
        has written to, Disconnected if a transaction is open in it, and the translated errors of Kafka.
        """
        try:
            known = known_topics(self.properties, names)
            new = {name: self._partitions if name != self.names.events else 1 for name in names - known.keys()}
            there = {name: self._used(known[name], name) for name in names & known.keys()}
            self._require_kept(set(there), known)
            self._require_unused([(name, number) for name in there.keys() - ours for number in range(there[name])])
            self._create(new)
        except KafkaException as error:
            raise write_error(error, min(names)) from None
        return there | new

    def open_debezium(self, names: set[str]) -> dict[str, int]:
        """Creates missing topics of Debezium's messages, and returns the number of partitions of each topic.

        Topics that exist already may have any messages and settings: Debezium itself may have written to them before.
        Raises Disconnected if a transaction is open in them, and the translated errors of Kafka.
        """
        try:
            known = known_topics(self.properties, names)
            there = {name: len(topic.partitions) for name, topic in known.items()}
            partitions = [(name, number) for name, count in there.items() for number in range(count)]
            left = {topic for topic, _ in self.unended(partitions)} if partitions else set()
            new = dict.fromkeys(names - known.keys(), self._partitions)
            self._maker.create(new)
        except KafkaException as error:
            raise write_error(error, min(names)) from None
        self._require_ended(left)
        return there | new

    def _used(self, topic: KnownTopic, name: str) -> int:
        """Returns the number of partitions to which records are written: in topics with a total order, only the first
        partition.
        """
        return 1 if name in self.names.first else len(topic.partitions)

    def partitions(self, name: str) -> list[Partition]:
        """Returns the present partitions of a topic, empty if it is missing. Raises KafkaException."""
        topic = known_topics(self.properties, [name]).get(name)
        return [(name, number) for number in topic.partitions] if topic else []

    def require_matching(self, entry: Entry | None) -> dict[Partition, int]:
        """Returns the end of each partition that may have been written to, for ``require_counted``.

        Raises UserError if the records in the topics do not match the commit log.
        """
        partitions = set(entry.partitions) if entry else set()
        names = self.names
        # The topic of event messages is ignored, since both layouts may have it.
        written = {topic for topic, _ in partitions if not names.is_events(topic)}
        if written and (names.topic in written) != (names.layout == SINGLE):
            raise UserError(
                "the commit log is of another layout",
                code="CDC-COMMIT-LOG-LAYOUT",
                where=f"profile key kafka.layout, topic {names.commits}",
                hint="keep the layout, or name a new topic in kafka.topic and give the follower a fresh copy",
            )
        if names.layout == SINGLE:
            partitions.add((names.topic, 0))
        self._require_there(partitions)
        ends = end_offsets(self.properties, partitions, committed=False)
        if entry is None and any(ends.values()) and self._has_had_records(partitions):
            raise UserError(
                "the topic has records but no commit log: it was lost, or something else writes here",
                code="CDC-TOPIC-WITHOUT-COMMIT-LOG",
                where=f"topic {names.commits}",
                hint=_FRESH,
            )
        for (topic, number), end in sorted(ends.items()):
            wanted = entry.counts.get(f"{topic}/{number}", 0) if entry else 0
            # If the brokers lost only the newest records, the older records are still there, and the producer can
            # continue after them.
            if not end and wanted:
                raise _emptied(topic, number, wanted, end)
        return ends

    def _has_had_records(self, partitions: set[Partition]) -> bool:
        """Whether readers see a message in one of ``partitions``, or have seen one that retention has deleted.

        What is there may also be a stream's first transaction, which was rolled back together with its entry.
        """
        return bool(newest(self.properties, partitions)) or any(begin_offsets(self.properties, partitions).values())

    def unended(self, partitions: list[Partition]) -> list[Partition]:
        """Returns the ``partitions`` in which a transaction has no end marker, even after some seconds; raises
        KafkaException.

        A broker reports a commit or an abort before it writes the end marker into the partitions.
        """
        give_up = time.monotonic() + _ANSWER_SECONDS
        while (left := unended(self.properties, partitions)) and time.monotonic() < give_up:
            time.sleep(_POLL_SECONDS)
        return left

    def newest_entry(self, resource: str) -> Entry | None:
        """Returns the newest committed entry, None if there is none. Raises the errors of ``commit_log.entries`` and
        KafkaException.
        """
        return next(commit_log.entries(self.properties, topic=self.names.commits, resource=resource), None)

    def require_alone(self, resource: str) -> None:
        """Checks, after the first commit to an empty commit log, that no other producer found it empty too.

        Both producers write before they read, and they read the entries of open transactions, too. So at least one of
        the producers sees the other producer's entry. Raises Disconnected, and UserError if there is another producer's
        entry.
        """
        commits = self.names.commits
        try:
            for _ in commit_log.entries(self.properties, topic=commits, resource=resource, committed=False):
                pass
        except KafkaException as error:
            raise write_error(error, commits) from None

    def _create(self, partitions: Mapping[str, int]) -> None:
        made = self._maker.create(partitions)
        for name in made:
            self.times.learn(name, ANY_TIME)
        self._checked |= made
        # The other topics existed already, or were created without these settings, so their settings are checked.
        if others := set(partitions) - made:
            self._require_kept(others, known_topics(self.properties, others))

    def _require_there(self, partitions: set[Partition]) -> None:
        known = known_topics(self.properties, {topic for topic, _ in partitions})
        for topic, number in sorted(partitions):
            if topic not in known or number not in known[topic].partitions:
                raise UserError(
                    "the commit log counts its records, but it does not exist: it was deleted",
                    code="CDC-TOPIC-WITHOUT-COMMIT-LOG",
                    where=f"topic {topic}",
                    hint=_FRESH,
                )
        self._require_kept({topic for topic, _ in partitions}, known)

    def _require_kept(self, names: set[str], known: Mapping[str, KnownTopic]) -> None:
        """Checks, once per existing topic, that its settings keep the written messages. Raises UserError."""
        unchecked = (names & known.keys()) - self._checked
        with admin_client(self.properties) as admin:
            found = described(admin, unchecked)
        for name, settings in sorted(found.items()):
            is_log = name == self.names.commits
            self.times.learn(name, settings)
            require_kept(name, settings, is_log=is_log, servers=self.properties["bootstrap.servers"])
            replicas = min((len(each.replicas) for each in known[name].partitions.values()), default=1)
            note_risks(name, settings, is_log=is_log, replicas=replicas, retention_ms=self._retention_ms)
        self._checked |= unchecked

    def _require_ended(self, left: set[str]) -> None:
        """Raises Disconnected if a transaction was ``left`` open in topics; the next sink's recovery examines them."""
        if left:
            self.suspects |= left
            raise Disconnected(
                "a transaction was left open in the topic",
                code="CDC-KAFKA-TRANSACTION-OPEN",
                where=f"topic {', '.join(sorted(left))}",
            )

    def _require_unused(self, partitions: list[Partition]) -> None:
        """Raises an error unless the partitions are empty: no other client may write to our topics.

        Raises Disconnected if a transaction is open in a partition, or messages are found that may be ours: the
        recovery of the next sink examines them. Raises UserError if that recovery has found that the messages are not
        ours.
        """
        left = {topic for topic, _ in unended(self.properties, partitions)}
        self._require_ended(left)
        written = {topic for topic, _ in newest(self.properties, partitions)} if partitions else set()
        if new := written - self.suspects:
            self.suspects |= new
            names = ", ".join(sorted(new))
            raise Disconnected(
                "the topic has messages that no entry of the commit log counts",
                code="CDC-TOPIC-UNCOUNTED",
                where=f"topic {names}",
            )
        if written:
            raise UserError(
                "the topic has messages that this producer did not write",
                code="CDC-TOPIC-NOT-OWN",
                where=f"topic {min(written)}",
                hint="set kafka.prefix to tell this leader's topics from others of the same names; also if it wrote "
                "them and the brokers lost what counts them: followers then need a fresh copy of the leader",
            )


def few_brokers(text: str, topic: str, *, wanted: int, before: int) -> CdcError:
    """Returns the error for a new ``topic`` that needs ``wanted`` brokers while fewer brokers answer; ``text`` is
    Kafka's message.

    ``before`` is the number of replicas of a topic that exists already. If it is at least ``wanted``, there are enough
    brokers and some are only away, as in a rolling restart: the error is Disconnected. Otherwise it is a UserError.
    """
    where = f"topic {topic}, profile key kafka.replicas"
    hint = f"start the brokers that are away, or set kafka.replicas to less than {wanted}; topics keep what they have"
    if before >= wanted:
        return Disconnected(
            f"too few brokers for a new topic: {text}", code="CDC-KAFKA-BROKERS-AWAY", where=where, hint=hint
        )
    return UserError(f"too few brokers for a new topic: {text}", code="CDC-KAFKA-REPLICAS", where=where, hint=hint)


_TOPICS_PER_CALL = 200  # number of topics created in one call, which must return in time


class TopicMaker:
    """Creates the topics of a leader; ``names`` are the names of these topics. ``properties`` are the properties for
    librdkafka's clients.
    """

    def __init__(
        self, properties: Mapping[str, Any], names: Topics, *, replicas: int, retention_ms: int, min_insync: int
    ) -> None:
        self._properties = properties
        self._names = names
        self._replicas = replicas
        self._retention_ms = retention_ms
        self._min_insync_replicas = min_insync or (2 if replicas >= _MANY_REPLICAS else 0)

    def create(self, partitions: Mapping[str, int]) -> set[str]:
        """Creates the topics with these numbers of partitions, and waits until they have leaders.

        Returns the topics that have all requested settings. All other topics existed already, or were created without
        the settings that the brokers do not know. Raises Disconnected, KafkaException, and UserError if the brokers
        refuse.
        """
        names, made = sorted(partitions), set[str]()
        for first in range(0, len(names), _TOPICS_PER_CALL):
            some = {name: partitions[name] for name in names[first : first + _TOPICS_PER_CALL]}
            left = self._ask(some, ANY_TIME, passes=SETTING_REFUSED)
            # Brokers before Kafka 3.6 do not know these settings, and other brokers may forbid them.
            self._ask({name: some[name] for name in left}, {}, passes=frozenset())
            self._await_leaders(list(some))
            self._await_answers({(name, number) for name in some for number in range(some[name])})
            made |= some.keys() - left
        return made

    def validate(self, partitions: Mapping[str, int]) -> None:
        """Has the brokers check whether the topics could be created with these numbers of partitions, without creating
        them. Raises the errors of ``create``.
        """
        left = self._ask(partitions, ANY_TIME, passes=SETTING_REFUSED, validate_only=True)
        self._ask({name: partitions[name] for name in left}, {}, passes=frozenset(), validate_only=True)

    def _ask(
        self,
        partitions: Mapping[str, int],
        more: Mapping[str, str],
        *,
        passes: frozenset[int],
        validate_only: bool = False,
    ) -> set[str]:
        """Creates the topics with the additional settings ``more``, unless ``validate_only`` is true; returns the
        topics that were not created, since they exist or the error is in ``passes``.
        """
        count, left = self._replicas, set()
        topics = [
            NewTopic(name, num_partitions=number, replication_factor=count, config=self._settings(name) | dict(more))
            for name, number in partitions.items()
        ]
        # The request itself has the timeout: if only the future had a timeout, it would raise an error that is not
        # Kafka's.
        try:
            with admin_client(self._properties) as admin:
                options: dict[str, Any] = {"request_timeout": _ANSWER_SECONDS, "validate_only": validate_only}
                answers = admin.create_topics(topics, **options) if topics else {}
        except KafkaException as error:
            raise write_error(error, min(partitions), operation="CREATE") from None
        for name, answer in answers.items():
            try:
                answer.result()
            except KafkaException as error:
                if error.args[0].code() not in passes | {KafkaError.TOPIC_ALREADY_EXISTS}:
                    raise self._refused(error, name) from None
                left.add(name)
        return left

    def _refused(self, error: KafkaException, name: str) -> CdcError:
        if error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR:
            return write_error(error, name, operation="CREATE")
        log = known_topics(self._properties, [self._names.commits]).get(self._names.commits)
        before = min((len(each.replicas) for each in log.partitions.values()), default=0) if log else 0
        return few_brokers(error.args[0].str(), name, wanted=self._replicas, before=before)

    def _await_answers(self, left: set[Partition]) -> None:
        """Waits until the leaders of new partitions accept messages. This can be some time after the brokers have named
        these leaders.

        Until then, a leader may refuse the first batch of a transaction and accept the second batch, if both were on
        their way; the transaction then commits without the first batch (Kafka 4.3, librdkafka 2.16).
        """
        give_up = time.monotonic() + _ANSWER_SECONDS
        while left:
            ready = led(self._properties, left)
            left = left - ready
            if ready:
                give_up = time.monotonic() + _ANSWER_SECONDS  # a busy broker needs this time for each partition
            elif time.monotonic() > give_up:
                raise Disconnected(
                    "the topic was created, but no broker leads it",
                    code="CDC-BROKER-GONE",
                    where=f"topic {min(left)[0]}",
                )
            if left:
                time.sleep(_POLL_SECONDS)

    def _await_leaders(self, names: list[str]) -> None:
        give_up, left = time.monotonic() + _ANSWER_SECONDS, names
        while left:
            known = known_topics(self._properties, left)
            left = [name for name in left if not _is_led(known.get(name))]
            if left and time.monotonic() > give_up:
                raise Disconnected(
                    "the topic was created, but no broker leads it", code="CDC-BROKER-GONE", where=f"topic {left[0]}"
                )
            if left:
                time.sleep(_POLL_SECONDS)

    def _settings(self, name: str) -> dict[str, str]:
        own = {"max.message.bytes": str(self._properties.get("message.max.bytes", MESSAGE_BYTES))}
        if self._min_insync_replicas:
            own["min.insync.replicas"] = str(self._min_insync_replicas)
        if name == self._names.commits:
            # Only closed segments are compacted, so small segments keep the commit log small.
            return {"retention.ms": "-1", "cleanup.policy": "compact", "segment.bytes": "16777216"} | own
        return {"retention.ms": str(self._retention_ms), "cleanup.policy": "delete", "retention.bytes": "-1"} | own


def _is_led(topic: KnownTopic | None) -> bool:
    return topic is not None and all(partition.leader is not None for partition in topic.partitions.values())


def require_counted(entry: Entry | None, ends: Mapping[Partition, int]) -> None:
    """Raises UserError if a partition can't contain all records that ``entry`` counts; ``ends`` are the partitions'
    ends.

    ``entry`` is the entry to continue after. This check notices a topic that was deleted while a producer ran, and
    created again: it contains records, but its end is lower than the number of records that the entry counts.
    """
    for (topic, number), end in sorted(ends.items()):
        wanted = entry.counts.get(f"{topic}/{number}", 0) if entry else 0
        if end < wanted:
            raise _emptied(topic, number, wanted, end)


def _emptied(topic: str, number: int, wanted: int, end: int) -> UserError:
    return UserError(
        f"the commit log counts {wanted} records, the topic ends at offset {end}: it was deleted or emptied",
        code="CDC-TOPIC-WITHOUT-COMMIT-LOG",
        where=f"topic {topic}, partition {number}",
        hint=_FRESH,
    )
