"""``cdc-tail``: a leader's records as they pass, one line each, or as JSON, in the order of their sequences."""

import argparse
import functools
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from cdc.config import profile
from cdc.config.profile import Kafka
from cdc.config.topic_names import SINGLE
from cdc.errors import Disconnected, UserError
from cdc.kafka.errors import question_error
from cdc.model.printable import visible
from cdc.model.record import SKIPPED, Record, Row
from cdc.model.values import Value, display
from cdc.service import process
from cdc.tail.merged_topics import TailedTopics

__all__ = ["line", "main"]

_ANSWER_SECONDS = 10.0


def main() -> int:
    """Run the program; returns its exit status."""
    parser = argparse.ArgumentParser(prog="cdc-tail", description="Print a leader's records, one line each.")
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="TOML file that names the topics")
    parser.add_argument("-B", "--beginning", action="store_true", help="from the first record on, not the last ones")
    parser.add_argument("-n", "--records", type=int, default=10, metavar="N", help="how many of the last (default 10)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with new records until interrupted")
    parser.add_argument("--json", action="store_true", help="each record's JSON as it is in Kafka")
    return process.exit_status(functools.partial(_run, parser.parse_args()), program="cdc-tail")


def _run(arguments: argparse.Namespace) -> int:
    settings = profile.load(arguments.profile)
    process.setup_logging(level=settings.log.level, form=settings.log.format)
    kafka = settings.kafka
    last = None if arguments.beginning else max(0, arguments.records)
    stop = process.stop_on_signals()
    messages = _messages if kafka.layout == SINGLE else _merged
    for value, where in messages(kafka, last=last, follow=arguments.follow, stop=stop):
        text = value.decode("utf-8", "replace") if arguments.json else line(Record.parse(value, where=where))
        print(text, flush=arguments.follow)
    return 0


def line(record: Record) -> str:
    """A record as a person reads it: sequence, binlog position, operation, URI and the values."""
    head = f"{record.sequence}  {record.position}  {record.operation} {record.uri}"
    if record.operation in ("Query", SKIPPED):
        return visible(f"{head}  {' '.join(record.query.split())}")
    return visible(f"{head}  {'; '.join(_row(record.columns, row) for row in record.rows)}")


def _row(columns: tuple[str, ...], row: Row) -> str:
    if row.before is None or row.after is None:
        return _cells(columns, row.before or row.after or [])
    changed = [f"{c}={display(old)}→{display(new)}" for c, old, new in zip(columns, row.before, row.after, strict=True)
               if old != new]  # fmt: skip
    return f"{_cells(columns, row.before)}: {' '.join(changed)}"


def _cells(columns: tuple[str, ...], values: list[Value]) -> str:
    return " ".join(f"{column}={display(value)}" for column, value in zip(columns, values, strict=True))


def _messages(kafka: Kafka, *, last: int | None, follow: bool, stop: threading.Event) -> Iterator[tuple[bytes, str]]:
    """Values and places of the topic's committed messages: the ``last`` ones or all, then new ones to ``follow``."""
    consumer = _consumer(kafka)
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(kafka.topic, 0), timeout=_ANSWER_SECONDS)
        # Each Kafka transaction takes one more offset for its end, so there are fewer records than offsets.
        start = first if last is None else max(first, end - 2 * last - 100)
        consumer.assign([TopicPartition(kafka.topic, 0, start)])
        kept: deque[tuple[bytes, str]] = deque(maxlen=last)
        at_end = False
        while not stop.is_set() and not (at_end and not follow):
            message = consumer.poll(0.2)
            if message is None:
                continue
            error = message.error()
            if error is None:
                found = (message.value() or b"", f"topic {kafka.topic}, offset {message.offset()}")
                if at_end or last is None:
                    yield found
                else:
                    kept.append(found)
            elif error.code() == KafkaError._PARTITION_EOF:
                at_end = True
                yield from kept
                kept.clear()
            else:
                problem = _translated(error, kafka)
                raise Disconnected(problem.what, where=problem.where, hint=problem.hint) if at_end else problem
    except KafkaException as error:
        raise _translated(error.args[0], kafka) from None
    finally:
        consumer.close()


def _merged(kafka: Kafka, *, last: int | None, follow: bool, stop: threading.Event) -> Iterator[tuple[bytes, str]]:
    """The same of all topics of layout "per_table", in the order of the sequences."""
    consumer = _consumer(kafka)
    try:
        topics = TailedTopics(consumer, kafka.properties(), kafka.topics(), last=last)
        while not stop.is_set() and not (topics.at_end and not follow):
            yield from topics.next(0.2)
    except KafkaException as error:
        raise _translated(error.args[0], kafka) from None
    finally:
        consumer.close()


def _consumer(kafka: Kafka) -> Consumer:
    own = {
        "group.id": "cdc-tail",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
    }
    try:
        return Consumer(kafka.properties() | own, logger=process.LIBRDKAFKA)
    except KafkaException as error:
        raise _translated(error.args[0], kafka) from None


def _translated(error: KafkaError, kafka: Kafka) -> UserError:
    where = f"topic {kafka.topic} at {kafka.bootstrap_servers}"
    return question_error(error, kafka.properties(), where=where)


if __name__ == "__main__":
    sys.exit(main())
