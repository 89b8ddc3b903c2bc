"""Defines the places of a stream in a leader's topics, between which its transactions are read in batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from confluent_kafka import KafkaException

from cdc.config.profile import Profile
from cdc.errors import Disconnected, PromiseError
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import question_error
from cdc.kafka.partitions import OPEN_TRANSACTION_SECONDS, await_ends, end_offsets
from cdc.kafka.topics import known_topics
from cdc.model.position import partition_name, partition_of
from cdc.reader.records import Records, Transaction

__all__ = ["StreamPlace", "transactions_between"]


@dataclass(frozen=True, slots=True)
class StreamPlace:
    """The place after the transaction that ends with ``sequence``; -1 is the place before the oldest transaction.

    ``offsets`` maps the names of partitions to offsets before which there is no later record; a partition that is
    missing is read from its beginning.
    """

    sequence: int = -1
    offsets: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the place as the dictionary that Spark stores."""
        return {"sequence": self.sequence, "offsets": dict(self.offsets)}

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Self:
        """Reads what ``to_json`` has returned."""
        return cls(int(body["sequence"]), {str(name): int(at) for name, at in body["offsets"].items()})

    def newest(self, profile: Profile) -> "StreamPlace":
        """Returns the place after the newest transaction that can be read as a whole; this place if there is no later
        one.

        Raises UserError if Kafka refuses a request or does not answer, Disconnected if a transaction stays open.
        """
        kafka = profile.kafka
        properties, commits = kafka.properties() | {"log_level": 0}, kafka.topics().commits
        try:
            before = newest_commits(properties, commits) if known_topics(properties, [commits]) else None
            if before is None:
                return self
            # An entry commits with the records that it counts, and is read after the offsets. So all records before the
            # offsets are among those that it counts.
            ends = end_offsets(properties, before.partitions)
            newest = newest_commits(properties, commits) or before
            sequence = newest.next_sequence - 1 - newest.of_open
            if sequence <= self.sequence:
                return self
            if not await_ends(properties, newest.partitions, seconds=OPEN_TRANSACTION_SECONDS):
                raise Disconnected(
                    f"a transaction has been open for {OPEN_TRANSACTION_SECONDS:.0f} s",
                    code="CDC-KAFKA-TRANSACTION-OPEN",
                    where=f"the topics that {commits} names",
                    hint="start cdc-producer, which ends the transaction",
                )
        except KafkaException as error:
            raise question_error(error.args[0], kafka.properties(), where=f"topic {kafka.topic}") from None
        if newest.of_open:
            return StreamPlace(sequence, self.offsets)
        return StreamPlace(sequence, {partition_name(each): end for each, end in ends.items()})


def transactions_between(profile: Profile, begin: StreamPlace, end: StreamPlace) -> Iterator[Transaction]:
    """Yields the transactions after the place ``begin`` through the place ``end``, each once, whole and in order.

    Raises the errors of iterating over Records, and PromiseError if the topics end before ``end``.
    """
    since = None if begin.sequence < 0 else begin.sequence + 1
    begins = {partition_of(name): offset for name, offset in begin.offsets.items()}
    reached = begin.sequence
    if reached >= end.sequence:
        return
    for transaction in Records(profile, since=since, follow=False, begins=begins).transactions():
        yield transaction
        reached = transaction.records[-1].sequence
        if reached >= end.sequence:
            return
    raise PromiseError(
        f"the topics end with sequence {reached}, before {end.sequence}, up to which they were to be read",
        code="CDC-TOPIC-READ-GONE",
        where=f"topic {profile.kafka.topic}",
        hint="retention or the brokers have removed records: begin a new stream, with since= a sequence that is there",
    )
