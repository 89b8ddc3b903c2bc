"""The program cdc-tail: prints a leader's records in the order of their sequences, each record as a line of text or as
JSON."""

import argparse
import functools
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, KafkaException

from cdc.browse.entries import KINDS, Filter, parsed_kinds, parsed_time
from cdc.config import profile
from cdc.config.profile import Kafka
from cdc.config.topic_names import SINGLE
from cdc.kafka.broker_checks import check_topics
from cdc.kafka.partitions import require_first_only
from cdc.model.record import Record
from cdc.reader.tailed_topics import Passes, TailedTopic, TailedTopics, stopped_reading, tailing_consumer
from cdc.service.command_line import CheckList, add_common_options
from cdc.service.logs import setup_logging
from cdc.service.process import exit_status, stop_on_signals
from cdc.tail.all_messages import AllMessages, message_json, message_line
from cdc.tail.lines import line

__all__ = ["main"]

_POLL_SECONDS = 0.2
_GROUP = "cdc-tail"
_LAST = 10


_EXAMPLES = """
cdc-tail producer_profile.toml -f                        the last ten records, and then each new one
cdc-tail producer_profile.toml --table 'shop.*' -n 50    the last 50 records of the database shop
cdc-tail producer_profile.toml --table shop.orders --key 4711    the last changes of one row
cdc-tail producer_profile.toml --since 2026-11-27T10:15 --upto 2026-11-27T10:20 --kind Delete,Query
cdc-tail producer_profile.toml --gtid 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 -B
cdc-tail producer_profile.toml --all -n 5                messages of all topics, with headers and timestamps
"""
_EPILOG = """\
A key is its columns' values: 4711, or 7,north. A time without a zone is UTC. --since begins at the first message with
a timestamp from then on: where a topic does not take the leader's times, that may be another one than the commit's."""


def main() -> int:
    """Runs the program; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="cdc-tail",
        description="Print a leader's records, one line each.",
        epilog=_EPILOG,
    )
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="TOML file that names the topics")
    parser.add_argument("-B", "--beginning", action="store_true", help="from the first record on, not the last ones")
    parser.add_argument(
        "-n", "--records", type=int, metavar="N", help="how many of the last (default 10; with --since all from then)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="continue with new records until interrupted")
    parser.add_argument("--json", action="store_true", help="each record's JSON as it is in Kafka")
    wanted = parser.add_argument_group("which records")
    wanted.add_argument(
        "--table", action="append", default=[], metavar="DB.TABLE", help="of these tables; may have * and be repeated"
    )
    wanted.add_argument("--key", default="", help="of the rows with this key")
    wanted.add_argument("--since", metavar="TIME", help="of commits from this time on")
    wanted.add_argument("--upto", metavar="TIME", help="of commits up to this time")
    wanted.add_argument("--gtid", default="", help="of this transaction")
    wanted.add_argument("--kind", metavar="KIND,…", help=f"of these kinds: {', '.join(KINDS)}")
    wanted.add_argument(
        "--all",
        action="store_true",
        help="all messages of all the leader's topics, with headers and timestamps; -n counts in each partition",
    )
    parser.add_argument("--check", action="store_true", help="list what must be changed first, print no record")
    add_common_options(parser, examples=_EXAMPLES)
    arguments = parser.parse_args()
    if arguments.all and (arguments.table or arguments.key or arguments.gtid or arguments.kind or arguments.upto):
        parser.error("--all shows messages that are no records, too: only --since goes with it")
    return exit_status(functools.partial(_run, arguments), program="cdc-tail")


def _run(arguments: argparse.Namespace) -> int:
    settings = profile.load(arguments.profile, servers=profile.KAFKA_ONLY)
    setup_logging(level=settings.log.level, form=settings.log.format)
    if arguments.check:
        items = CheckList()
        check_topics(items, settings.kafka, group=_GROUP)
        return items.end()
    wanted = _filter(arguments)
    last = arguments.records
    if last is None and arguments.since is None:
        last = _LAST
    last = None if arguments.beginning or last is None else max(0, last)
    stop = stop_on_signals()
    for text in _lines(settings.kafka, wanted, arguments, last=last, stop=stop):
        print(text, flush=arguments.follow)
    return 0


def _filter(arguments: argparse.Namespace) -> Filter:
    """Builds the filter from the command line's options. Raises UserError."""
    return Filter(
        tables=tuple(arguments.table),
        key=arguments.key,
        since_us=None if arguments.since is None else parsed_time(arguments.since),
        upto_us=None if arguments.upto is None else parsed_time(arguments.upto, end=True),
        gtid=arguments.gtid,
        kinds=parsed_kinds(filter(None, (arguments.kind or "").split(","))),
    )


def _lines(
    kafka: Kafka, wanted: Filter, arguments: argparse.Namespace, *, last: int | None, stop: threading.Event
) -> Iterator[str]:
    """Yields the lines to print: the ``last`` committed records that pass the filter ``wanted``, or all of them if
    ``last`` is None. Then waits for new records if the option ``follow`` is set.

    Raises UserError if Kafka returns an error or does not answer; raises Disconnected instead if all old records were
    read before.
    """
    consumer: Consumer | None = None
    source: TailedTopic | TailedTopics | AllMessages | None = None
    try:
        require_first_only(kafka.properties(), kafka.topics().first)
        consumer = tailing_consumer(kafka, _GROUP)
        source = _source(consumer, kafka, wanted, is_all=arguments.all, last=last)
        while not stop.is_set() and not (source.at_end and not arguments.follow):
            if isinstance(source, AllMessages):
                for message in source.next(_POLL_SECONDS):
                    yield message_json(message) if arguments.json else message_line(message, kafka.topics())
                continue
            for value, where in source.next(_POLL_SECONDS):
                yield value.decode("utf-8", "replace") if arguments.json else line(Record.parse(value, where=where))
    except KafkaException as error:
        answered = source is not None and source.at_end
        raise stopped_reading(error.args[0], kafka, group=_GROUP, answered=answered) from None
    finally:
        if consumer is not None:
            consumer.close()


def _source(
    consumer: Consumer, kafka: Kafka, wanted: Filter, *, is_all: bool, last: int | None
) -> TailedTopic | TailedTopics | AllMessages:
    properties, names = kafka.properties(), kafka.topics()
    since_ms = None if wanted.since_us is None else wanted.since_us // 1000
    if is_all:
        properties = kafka.properties(group_id=_GROUP)
        return AllMessages(consumer, properties, names, last=last, since_ms=since_ms, events=kafka.events)
    passes: Passes | None = None
    if wanted != Filter():

        def passes(value: bytes, where: str) -> bool:
            return wanted.matches(Record.parse(value, where=where))

    if kafka.layout == SINGLE:
        return TailedTopic(consumer, properties, names, last=last, passes=passes, since_ms=since_ms)
    return TailedTopics(consumer, properties, names, last=last, passes=passes, since_ms=since_ms)


if __name__ == "__main__":
    sys.exit(main())
