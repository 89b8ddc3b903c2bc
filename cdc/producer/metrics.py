"""Counts connections and Kafka commits, and renders them as metrics, health checks, a status line and log fields.

Nothing here is called per record. Other threads read the attributes without a lock.
"""

import time
from collections.abc import Callable, Collection, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from cdc.kafka.broker_checks import Brokers
from cdc.model.commit_entry import Entry
from cdc.model.position import file_number
from cdc.producer.binlog.source import BinlogSource
from cdc.producer.copy.progress_log import Copying
from cdc.producer.pause import Pause
from cdc.service.delays import Behind, Histogram
from cdc.service.http_endpoint import Check
from cdc.service.retry import Retry

__all__ = ["ProducerMetrics"]

_STANDBY = "standby: another producer of the topic works"
_HEARTBEATS = 3  # missing heartbeats after which the leader counts as unhealthy


class ProducerMetrics:
    """Counts connections, commits and copies from the program's start, across lost connections.

    ``retry`` knows whether a server is away; the health checks query ``brokers`` about ``topics``. ``pause`` is set by
    commands.
    """

    def __init__(self, *, retry: Retry, brokers: Brokers, topics: Collection[str], heartbeat_seconds: int) -> None:
        self._retry = retry
        self.pause = Pause()
        self._brokers = brokers
        self._topics = topics
        self._longest_silence = float(_HEARTBEATS * heartbeat_seconds)
        # An idle leader shows with each heartbeat that there are no more events. The limit is two heartbeat intervals,
        # since a heartbeat may come late.
        self._behind = Behind(look_seconds=2.0 * heartbeat_seconds)
        self._source: BinlogSource | None = None
        self._entry: Entry | None = None
        self._connections = 0
        self._known_transactions = self._known_filtered = 0
        self._copied = self._known_copied = (0, 0)  # rows, bytes
        self._tables_left = 0
        self._deduplicated = self._known_deduplicated = 0
        self._unrepeatable = self._known_unrepeatable = 0
        self._copying: Callable[[], Copying | None] = lambda: None
        self._commits, self._delays = Histogram(), Histogram()
        self._committed_at = 0.0
        self._bytes = self._transactions = self._filtered = 0
        self.records = 0
        self.standby = False

    def connected(self, source: BinlogSource, entry: Entry, *, copying: Callable[[], Copying | None]) -> None:
        """Notes that both servers are connected, and that the stream continues after ``entry``.

        ``copying`` returns the copy that runs at the moment.
        """
        self._source, self._entry, self._copying = source, entry, copying
        self._connections += 1
        self._known_transactions = self._known_filtered = 0
        self._known_copied, self._known_unrepeatable, self._known_deduplicated = (0, 0), 0, 0
        self._committed_at = time.monotonic()

    def committed(
        self, entry: Entry, *, size: int, seconds: float, through_us: int | None, transactions: int, filtered: int
    ) -> None:
        """Notes that ``entry`` has been committed with ``size`` bytes of records, in ``seconds``.

        ``through_us`` is the leader's commit time of the newest transaction read to its end; ``transactions`` counts
        the transactions of this connection, ``filtered`` counts its events that did not pass the filters.
        """
        before = self._entry.next_sequence if self._entry else 0
        self.records += entry.next_sequence - before
        if through_us is not None and entry.next_sequence > before and transactions > self._known_transactions:
            self._delays.observe(max(0.0, time.time() - through_us / 1_000_000))
        self._transactions += transactions - self._known_transactions
        self._filtered += filtered - self._known_filtered
        self._known_transactions, self._known_filtered = transactions, filtered
        self._bytes += size
        self._entry = entry
        self._commits.observe(seconds)
        self._committed_at = time.monotonic()
        if through_us is not None:
            self._behind.through_us = through_us

    def merged(self, messages: int) -> None:
        """Notes the number of Debezium's messages that this connection has merged into others."""
        self._deduplicated += messages - self._known_deduplicated
        self._known_deduplicated = messages

    def copied(self, *, rows: int, size: int, tables_left: int, unrepeatable: int) -> None:
        """Notes the numbers of rows and bytes that this connection has copied, and of tables that are still to be
        copied. Also notes the number of statements that followers can't repeat, so that their tables are copied again.
        """
        self._unrepeatable += unrepeatable - self._known_unrepeatable
        self._known_unrepeatable = unrepeatable
        all_rows, all_bytes = self._copied
        known_rows, known_bytes = self._known_copied
        self._copied = all_rows + rows - known_rows, all_bytes + size - known_bytes
        self._known_copied, self._tables_left = (rows, size), tables_left

    def drained(self) -> None:
        """Notes that the leader has no more events for now, and that all events so far are committed."""
        self._behind.drained_at = time.monotonic()

    def seconds_behind(self) -> float | None:
        """Returns an upper bound of the delay, in seconds, between the leader and the topics (see ``Behind``)."""
        return None if self.standby else self._behind.seconds(wall=time.time(), monotonic=time.monotonic())

    def metrics(self) -> Iterator[Metric]:
        """Yields the metrics for Prometheus, without the metrics whose value is unknown."""
        yield _count("records", "Records committed to Kafka.", self.records)
        yield _count("record_bytes", "Bytes of their JSON, before compression.", self._bytes)
        yield _count("leader_transactions", "Transactions of the leader read to their end.", self._transactions)
        yield _count("filtered_events", "Rows events and statements that the filters left out.", self._filtered)
        yield _count("deduplicated", "Debezium's messages that others have replaced (dedupe_ms).", self._deduplicated)
        yield from self._copies()
        yield _count("reconnects", "Times that both servers were connected again.", max(0, self._connections - 1))
        what = "Kafka transactions, and how long their commits took."
        yield self._commits.metric("cdc_producer_commit_seconds", what)
        what = "From the leader's commit to readable in Kafka, of the newest transaction in each Kafka transaction."
        yield self._delays.metric("cdc_producer_delay_seconds", what)
        yield _value("waiting", "1 while the producer waits for a server that is away.", bool(self._retry.trouble))
        yield _value("standby", "1 while another producer of the topic works (producer.standby).", self.standby)
        yield _value("paused", "1 while the operator has paused the producer.", self.pause.holding)
        # The figures from before another producer took over no longer describe the stream.
        if self._entry is not None and self._source is not None and not self.standby:
            position = self._entry.position
            yield _value("next_sequence", "The sequence that the next record gets.", self._entry.next_sequence)
            yield _value("binlog_file_number", "The leader's binlog file of the position.", file_number(position.file))
            yield _value("binlog_offset_bytes", "The position's offset in that file.", position.offset)
            what = "Since the leader sent anything, including heartbeats; 0 while events are being processed."
            yield _value("leader_silence_seconds", what, self._source.silence)
        behind = self.seconds_behind()
        if behind is not None:
            what = "Upper bound of the age of the oldest change not readable in Kafka yet; 0 when there is none."
            yield _value("behind_seconds", what, behind)

    def _copies(self) -> Iterator[Metric]:
        rows, size = self._copied
        yield _count("copied_rows", "Rows of tables that were copied into the stream.", rows)
        yield _count("copied_bytes", "Bytes of their JSON.", size)
        what = "Statements that followers can't repeat, after which their tables are copied again."
        yield _count("unrepeatable_statements", what, self._unrepeatable)
        yield _value("tables_to_copy", "Tables that are still to be copied.", self._tables_left)
        if (copying := self._copying()) is None or self.standby:
            return
        table = copying.table
        yield _of_table("copying_rows", "Rows copied of the table that is copied now.", table, copying.rows)
        if copying.estimated is not None:
            what = "Rows that the table has, as the leader estimates."
            yield _of_table("copying_rows_estimated", what, table, copying.estimated)
        what = "1 while the next chunk waits for a follower that has earlier chunks to apply first."
        yield _of_table("copying_waits", what, table, copying.waits_for is not None)
        if copying.seconds_left is not None:
            what = "Estimated time until the copy of the table ends, at the speed of the last minute."
            yield _of_table("copying_seconds_left", what, table, copying.seconds_left)

    def checks(self) -> Iterator[Check]:
        """Checks whether the stream continues, the leader sends events or heartbeats, and the brokers answer."""
        if self.standby:
            yield Check("stream", True, _STANDBY)
        elif self._source is None or self._entry is None:
            yield Check("stream", False, self._retry.trouble or "not connected yet")
        elif self._retry.trouble:
            yield Check("stream", False, self._retry.trouble)
        elif self.pause.holding:
            yield Check("stream", True, f"paused (cdc-producer --resume ends the pause), at {self._entry.position}")
        else:
            ago = time.monotonic() - self._committed_at
            yield Check("stream", True, f"at {self._entry.position}, last commit {ago:.1f} s ago")
            silence, busy = self._source.silence, self._source.busy
            says = f"processing events for {busy:.1f} s" if busy else f"last received {silence:.1f} s ago"
            yield Check("leader", silence <= self._longest_silence, says)
        yield self._brokers.check(self._topics)

    def line(self, *, rate: float) -> str:
        """Formats the status line for a terminal."""
        if self.standby:
            return _STANDBY
        if self._entry is None:
            return "connecting"
        behind = self.seconds_behind()
        copying = self._copying()
        # The copy comes first, since a narrow terminal shows no more of the line.
        words = [_told(copying)] if copying else []
        words += [
            f"{self._entry.position}",
            f"sequence {self._entry.next_sequence:,}",
            f"{rate:,.0f} records/s",
            "behind unknown" if behind is None else f"{behind:.1f} s behind",
            f"{self._filtered:,} filtered",
        ]
        if self._tables_left:
            words.insert(1 if copying else len(words), f"{self._tables_left:,} tables to copy")
        state = ["waiting for a server"] if self._retry.trouble else ["paused"] if self.pause.holding else []
        return "  ".join(state + words)

    def totals(self) -> dict[str, object]:
        """Returns the fields of the log message that the program writes when it ends."""
        if self.standby:
            return {"standby": True}
        if self._entry is None:
            return {}
        return {
            "position": self._entry.position,
            "next_sequence": self._entry.next_sequence,
            "records": self.records,
            "transactions": self._transactions,
            "filtered": self._filtered,
            "reconnects": max(0, self._connections - 1),
        } | self._copy_totals()

    def _copy_totals(self) -> dict[str, object]:
        if (copying := self._copying()) is None:
            return {}
        left = copying.seconds_left
        return {
            "tables_to_copy": self._tables_left,
            "copying": copying.table,
            "copied_rows": copying.rows,
            "rows_estimated": copying.estimated,
            "megabytes_per_second": round(copying.bytes_per_second / 1_000_000, 1),
            "seconds_left": None if left is None else round(left),
            "waits_for": copying.waits_for,
        }


def _told(copying: Copying) -> str:
    known = "" if copying.estimated is None else f" of about {copying.estimated:,}"
    speed = f"  {copying.bytes_per_second / 1_000_000:,.1f} MB/s" if copying.bytes_per_second else ""
    left = "" if copying.seconds_left is None else f", {copying.seconds_left:,.0f} s left"
    waits = f"  waiting for follower {copying.waits_for}" if copying.waits_for else ""
    # The table's name comes after the numbers, which matter more if the line is cut off.
    return f"copied {copying.rows:,}{known} rows{left} of {copying.table}{waits}{speed}"


def _of_table(name: str, what: str, table: str, value: float) -> Metric:
    family = GaugeMetricFamily(f"cdc_producer_{name}", what, labels=["table"])
    family.add_metric([table], value)
    return family


def _count(name: str, what: str, value: int) -> Metric:
    return CounterMetricFamily(f"cdc_producer_{name}", what, value=value)


def _value(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"cdc_producer_{name}", what, value=value)
