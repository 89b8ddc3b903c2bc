"""Reads messages of a leader's topics and selects them by their keys, so that messages of other tables are dropped
before JSON is parsed.

A message's key is a URI: for rows the URI of their table, for statements the URI of a database.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.config.profile import Kafka, Profile
from cdc.config.topic_names import PER_TABLE, SINGLE
from cdc.errors import UserError
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.fragments import FRAGMENT_HEADER
from cdc.kafka.partitions import FIRST
from cdc.model.names import Uri, folded
from cdc.model.server_version import logs_cascades
from cdc.spark.ddl.lineage import Name
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import LEADER, heads, messages, put_together
from cdc.spark.input.small_data import local_frame
from cdc.spark.input.spans import Span, span

__all__ = ["ORDINARY", "Source", "is_told"]

_OF_TABLE = "^flv://[^/]+/[^/]+/[^/]+$"
_HEAD_BYTES, _BEFORE_ROWS_BYTES = 4096, 16_384
# Spark finds a text faster if it does not begin with a quote, because JSON is full of quotes. So these texts begin
# after the opening quote of a name.
_ROWS, _TELLING = 'rows":[', ('types":', 'upto":null', 'after":null', 'Skipped":')
ORDINARY = (
    r'^\{"uri":"[^"]*","sequence":[0-9]+,"bn_file":\{[^{}]*\},"transaction":\{[^{}]*\},"columns":\[[^\]]*\]'
    r'(?:,"key":\[[^\]]*\])?(?:,"flags":[0-9]+)?,"operation":\{"(?:Add|Update|Delete)":\{"rows":\['
)
"""Matches the beginning of a record of rows that has neither column types nor a part of a copy. It can't match in the
midst of a name: quotes in a name have a backslash before them.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A leader's topics at the time when they were opened. Records can be read up to the sequence ``newest``, at which
    a transaction ends; ``newest`` is -1 if there are no records. ``folds_names`` is true if the records contain names
    in lower case; then ``profile`` contains names in lower case, too. ``silent_cascades`` is true if the leader is
    known to have a version that does not log the changes that its foreign keys make.
    """

    spark: SparkSession
    profile: Profile
    span: Span
    newest: int
    folds_names: bool = False
    silent_cascades: bool = False

    @classmethod
    def of(cls, spark: SparkSession, profile: Profile) -> Self:
        """Opens the topics of the leader that ``profile`` names. Raises UserError if topics are missing or no broker
        answers."""
        kafka = profile.kafka
        span(kafka)  # raises an error in one line if a topic or the brokers are missing
        # The commit log is read before the topics' ends: an entry commits with the records that it describes, so a span
        # that is read later contains all these records.
        newest = newest_commits({**kafka.properties(), "log_level": 0}, kafka.topics().commits)
        end = -1 if newest is None else newest.next_sequence - 1 - newest.of_open
        folds = newest is not None and newest.folds_names
        silent = newest is not None and not logs_cascades(newest.server_version)
        return cls(spark, profile.folded() if folds else profile, span(kafka), end, folds, silent)

    def stored(self, name: Name) -> Name:
        """Returns the name of a table as records contain it."""
        return (folded(name[0]), folded(name[1])) if self.folds_names else name

    @property
    def kafka(self) -> Kafka:
        return self.profile.kafka

    @property
    def cut(self) -> bool:
        """Whether retention has deleted the oldest records of a topic."""
        return any(begin > 0 for begin, _ in self.span.partitions.values())

    def uri(self, name: Name) -> str:
        """Returns the key of a table's messages."""
        return str(Uri(self.profile.mysql_resource_name, *name))

    def of_tables(self, names: Collection[Name]) -> DataFrame:
        """Reads the messages with rows of the tables ``names``, with the columns side, partition, offset and value."""
        topics = {self.kafka.topics().of_table(*name) for name in names}
        return self._read(self._within(topics), F.col("key").isin([self.uri(name) for name in sorted(names)]))

    def of_all(self) -> DataFrame:
        """Reads the messages with rows of all tables, with the columns side, partition, offset and value."""
        return self._read(self.span, F.col("key").rlike(_OF_TABLE))

    def stream_of(self, names: Collection[Name] | None) -> DataFrame:
        """Reads the messages with rows of the tables ``names``, or of all tables, as a stream for Structured Streaming
        that begins with the oldest message.

        Raises UserError for topics that were written without Kafka transactions. Spark raises an error at a record that
        was written as several messages, since a stream would have to wait for all of these messages.
        """
        if self.span.marks:
            raise UserError(
                "records that were written without Kafka transactions can't be read as a stream: only later messages "
                "show which of them count",
                code="CDC-SPARK-NO-STREAM",
                where=f"topic {self.kafka.topic} (profile key kafka.transactions)",
                hint="read changes as a batch, or with the data source cdc (docs/tables.md, For SQL)",
            )
        topics = sorted({topic for topic, _ in self.span.partitions})
        if names is not None and self.kafka.layout == PER_TABLE:
            topics = sorted({self.kafka.topics().of_table(*name) for name in names})
        reader = self.spark.readStream.format("kafka").options(**kafka_options(self.kafka))
        reader = reader.option("kafka.isolation.level", "read_committed").option("subscribe", ",".join(topics))
        found = reader.option("startingOffsets", "earliest").option("includeHeaders", "true").load()
        key = F.col("key").cast("string")
        wanted = key.rlike(_OF_TABLE) if names is None else key.isin([self.uri(name) for name in sorted(names)])
        fragment = f"exists(headers, h -> h.key = '{FRAGMENT_HEADER}')"
        fails = (
            "raise_error('a record was written as several messages, which no stream of changes reads: read a stream of "
            "the data source cdc (docs/tables.md, For SQL)')"
        )
        if self.kafka.layout == SINGLE:
            wanted &= F.col("partition") == FIRST  # other partitions may have been added to the topic
        return found.where(wanted).select(
            F.lit(LEADER).alias("side"), F.concat_ws("/", "topic", "partition").alias("partition"), "offset",
            F.expr(f"IF({fragment}, CAST({fails} AS BINARY), value)").alias("value"),
        )  # fmt: skip

    def of_statements(self, names: Collection[Name] | None) -> DataFrame:
        """Reads the messages with statements. Also reads those messages with rows that contain column types, or that
        begin or end a table copy; the result may contain other messages with rows, too.

        If ``names`` is given, only messages with rows of these tables are included; in layout "per_table" statements
        are read only from the topics of these tables and from the events topic.
        """
        uris = None if names is None else [self.uri(name) for name in sorted(names)]
        wanted = None if uris is None else ~F.col("key").rlike(_OF_TABLE) | F.col("key").isin(uris)
        topics = self.kafka.topics()
        some = None if names is None else {topics.events, *(topics.of_table(*name) for name in names)}
        found = self._read(self._within(some), wanted, keyed=True)
        return found.where(is_told()).drop("key")

    def heads(self) -> DataFrame:
        """Reads the ``sequence``, ``transaction`` and ``ts_us`` of all records, and whether each record is the ``last``
        of its transaction.
        """
        found = heads(self._read(self.span, None), "sequence", "transaction", "last", "ts_us")
        return found.where(F.col("sequence") <= self.newest)

    def everything(self) -> DataFrame:
        """Reads all messages, with the columns side, partition, offset, key and value."""
        return self._read(self.span, None, keyed=True)

    def outline(self) -> DataFrame:
        """Reads all records, with the columns partition, offset, uri (NULL for a record without rows), sequence, file,
        position, transaction and ts_us. ``told`` is true for the records that ``of_statements`` also returns. Only they
        have a ``value``; in all other records it is NULL.
        """
        uri = F.when(F.col("key").rlike(_OF_TABLE), F.col("key")).alias("uri")
        told = is_told().alias("told")
        found = self._read(self.span, None, keyed=True).select("partition", "offset", uri, told, "value")
        fields = ("sequence", "file", "position", "transaction", "ts_us")
        value = F.when(F.col("told"), F.col("value")).alias("value")
        return heads(found, *fields).select("partition", "offset", "uri", *fields, "told", value)

    def _within(self, topics: Iterable[str] | None) -> Span:
        if topics is None or self.kafka.layout != PER_TABLE:
            return self.span
        wanted = set(topics)
        partitions = {each: ends for each, ends in self.span.partitions.items() if each[0] in wanted}
        return replace(self.span, partitions=partitions)

    def _read(self, part: Span, wanted: Column | None, *, keyed: bool = False) -> DataFrame:
        """Reads the records of ``part`` whose keys fulfil the condition ``wanted``, and joins the fragments of large
        records; if ``keyed``, the result contains the key."""
        names = [*(["key"] if keyed else []), "value"]
        if not part.partitions:
            columns = "side STRING, partition STRING, offset BIGINT, key STRING, value BINARY"
            return local_frame(self.spark, [], columns).select("side", "partition", "offset", *names)
        options = kafka_options(self.kafka)
        found = messages(
            self.spark, part, options=options | ({"includeHeaders": "true"} if part.fragmented else {})
        ).withColumn("key", F.col("key").cast("string"))
        found = found if wanted is None else found.where(wanted)
        ours = F.lit(LEADER).alias("side"), F.concat_ws("/", "topic", "partition").alias("partition"), "offset"
        if not part.fragmented:
            return found.select(*ours, *names)
        whole = put_together(found.select(*ours, "value", "headers"), part)
        if not keyed:
            return whole
        uri = F.get_json_object(F.substring("value", 1, _HEAD_BYTES).cast("string"), "$.uri")
        fast = F.regexp_extract(F.substring("value", 1, _HEAD_BYTES).cast("string"), r'^\{"uri":"([^"]*)"', 1)
        return whole.withColumn("key", F.when(fast != "", fast).otherwise(uri))


def is_told() -> Column:
    """Whether a message, according to its ``key`` and ``value``, is a statement, contains column types, or begins or
    ends a table copy.
    """
    # The texts that are searched for come before the rows, which make up most of a record.
    head = F.substring("value", 1, _BEFORE_ROWS_BYTES).cast("string")
    beginning = F.when(F.contains(head, F.lit(_ROWS)), F.substring_index(head, _ROWS, 1))
    beginning = beginning.otherwise(F.col("value").cast("string"))
    # An array of one element is used because in a filter Spark would compute the beginning again for each text.
    tells = F.exists(F.array(beginning), lambda text: reduce(or_, (F.contains(text, F.lit(each)) for each in _TELLING)))
    # The regular expression costs a third of that, and spares it for most records.
    tells = F.when(F.substring("value", 1, _HEAD_BYTES).cast("string").rlike(ORDINARY), F.lit(False)).otherwise(tells)
    return ~F.col("key").rlike(_OF_TABLE) | tells
