"""Reads the records of both topics that no earlier audit covered, and the times at which they arrived in Kafka."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from cdc.config.profile import Kafka, Profile
from cdc.config.renames import Renames
from cdc.config.topic_names import PER_TABLE
from cdc.kafka.places import Reader
from cdc.model.position import Partition
from cdc.spark.ddl.scope import Scope
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import FOLLOWER, LEADER, before_limits, parse, read, records_in
from cdc.spark.input.renaming import own_schema, renames, with_leaders_names, with_lower_case_names
from cdc.spark.input.small_data import cached, in_background, in_one_part, set_tiny
from cdc.spark.input.spans import Span, continued, span, topic_ids
from cdc.spark.job.session import configure_for, log_stage
from cdc.spark.lag import intervals, read_entries
from cdc.spark.state.coverage import START_OVER, Held, lines_read
from cdc.spark.state.landing import Landing
from cdc.spark.state.store import StateStore

__all__ = ["Replication", "Topics", "read_topics"]


@dataclass(frozen=True, slots=True)
class Replication:
    """The audited replication. ``profiles`` are the profiles of both producers, by side. ``consumer`` is the profile of
    the consumer; None if that profile is not given."""

    profiles: Mapping[str, Profile]
    consumer: Profile | None = None

    def folded(self) -> Self:
        """Returns the replication with all names in lower case, for a server with lower_case_table_names = 1."""
        profiles = {side: profile.folded() for side, profile in self.profiles.items()}
        return type(self)(profiles, self.consumer.folded() if self.consumer else None)

    @property
    def resource(self) -> str:
        """The leader's name."""
        return self.profiles[LEADER].mysql_resource_name

    @property
    def own_schema(self) -> str:
        """The consumer's own database."""
        return own_schema(self.profiles, self.consumer)

    @property
    def renames(self) -> Renames:
        """The consumer's renames."""
        return renames(self.profiles, self.consumer)

    @property
    def scope(self) -> Scope:
        """The consumer's filters."""
        return Scope(self.consumer.filters if self.consumer else None, self.own_schema)


@dataclass(frozen=True, slots=True)
class Topics:
    """Both topics as they are now: ``held`` is the part that earlier audits covered, ``records`` are all other records.

    The records (columns of ``input.records``) have the leader's names of databases and tables. ``arrivals`` contains
    the times at which the records were in Kafka. ``spans`` maps each side to the offsets of all records, and ``ids``
    to the topics' ids in Kafka. ``folds_names`` is true if the names are in lower case, since one of the servers folds
    them.
    """

    records: DataFrame
    arrivals: DataFrame
    spans: Mapping[str, Span]
    ids: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    held: Held | None = None
    folds_names: bool = False


def read_topics(
    spark: SparkSession, replication: Replication, state: StateStore | None, landing: Landing | None = None
) -> Topics:
    """Reads both topics from where ``state`` ends to their present ends, and configures Spark for their size. With
    ``landing`` the messages are landed first, and read from there.

    Raises UserError if the brokers do not answer, if a topic does not exist or is not the topic of the state, and if
    files of the state are missing or damaged; UserError or PromiseError if brokers have lost what the state covers.
    """
    profiles = replication.profiles
    # The end of the follower's topic is read first, so that the leader's records that led to the follower's records are
    # before the end of the leader's topic.
    spans = {side: span(profiles[side].kafka) for side in (FOLLOWER, LEADER)}
    if folds_names := any(each.folds_names for each in spans.values()):
        replication = replication.folded()
    ids = {side: topic_ids(profiles[side].kafka, each) for side, each in spans.items()}
    held = state.load(ids) if state else None
    behind = {side: _behind(each, profiles[side].kafka, held, side) for side, each in spans.items()}
    if landing:
        configure_for(spark, sum(each.size for each in spans.values()))
        spans = landing.extended(spans, profiles, ids)
    new = {side: each.after(behind[side]) for side, each in spans.items()}
    size = sum(each.size for each in new.values())
    configure_for(spark, size)
    log_stage("reading both topics", records=size)
    set_tiny(spark, records=size + (lines_read(held, size) if held else 0))
    with in_background(lambda: _arrivals(spark, profiles, held), spark) as their_arrivals:
        records = cached(before_limits(_records(spark, replication, new, landing), spans))
        arrivals = their_arrivals()
    return Topics(
        records=records,
        # A run with a state reads the arrivals again later, to determine where the next audit continues.
        arrivals=cached(arrivals) if state else arrivals,
        spans=spans,
        ids=ids,
        held=held,
        folds_names=folds_names,
    )


def _behind(span: Span, kafka: Kafka, held: Held | None, side: str) -> dict[Partition, int]:
    """Returns the offsets behind what the state covers. Raises UserError and PromiseError if brokers have lost what it
    covers, and it is not in the topics again."""
    if held is None:
        return {}
    reader = Reader(f"the state, which covers the {side}'s topic,", START_OVER)
    return continued(kafka, span, held.offsets[side], held.read.get(side, {}), reader=reader)


def _records(
    spark: SparkSession, replication: Replication, spans: Mapping[str, Span], landing: Landing | None
) -> DataFrame:
    profiles = replication.profiles
    messages = [
        records_in(landing.messages(side, spans[side]), spans[side], side=side)
        if landing
        else read(spark, spans[side], options=kafka_options(profile.kafka), side=side)
        for side, profile in profiles.items()
    ]
    with_events = [side for side, profile in profiles.items() if profile.kafka.layout == PER_TABLE]
    records = parse(messages[0].unionByName(messages[1]), events_of=with_events)
    if spans[FOLLOWER].folds_names and not spans[LEADER].folds_names:
        records = with_lower_case_names(records, LEADER)
    return with_leaders_names(records, replication.renames, schema=replication.own_schema)


def _arrivals(spark: SparkSession, profiles: Mapping[str, Profile], held: Held | None) -> DataFrame:
    begins = held.arrivals if held else {}
    logs = [
        read_entries(spark, each.kafka, side=side, resource=each.mysql_resource_name, begin=begins.get(side, 0))
        for side, each in profiles.items()
    ]
    return intervals(in_one_part(logs[0].unionByName(logs[1])))
