"""The program cdc-tail: prints a leader's records in the order of their sequences, each record as a line of text or as
JSON."""

import argparse
import functools
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Consumer, KafkaException

from cdc.config import profile
from cdc.config.profile import Kafka
from cdc.config.topic_names import SINGLE
from cdc.errors import Disconnected
from cdc.kafka.errors import question_error
from cdc.kafka.first_partition import require_first_only
from cdc.model.record import Record
from cdc.service.command_line import add_common_options
from cdc.service.logs import LIBRDKAFKA, setup_logging
from cdc.service.process import exit_status, stop_on_signals
from cdc.tail.lines import line
from cdc.tail.newest_records import TailedTopic, TailedTopics

__all__ = ["main"]

_EXAMPLES = """
cdc-tail producer_profile.toml -n 20
cdc-tail producer_profile.toml --follow --json
"""

_POLL_SECONDS = 0.2
_GROUP = "cdc-tail"


def main() -> int:
    """Runs the program; returns its exit status."""
    parser = argparse.ArgumentParser(prog="cdc-tail", description="Print a leader's records, one line each.")
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="TOML file that names the topics")
    parser.add_argument("-B", "--beginning", action="store_true", help="from the first record on, not the last ones")
    parser.add_argument("-n", "--records", type=int, default=10, metavar="N", help="how many of the last (default 10)")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with new records until interrupted")
    parser.add_argument("--json", action="store_true", help="each record's JSON as it is in Kafka")
    add_common_options(parser, examples=_EXAMPLES)
    return exit_status(functools.partial(_run, parser.parse_args()), program="cdc-tail")


def _run(arguments: argparse.Namespace) -> int:
    settings = profile.load(arguments.profile, servers=profile.KAFKA_ONLY)
    setup_logging(level=settings.log.level, form=settings.log.format)
    last = None if arguments.beginning else max(0, arguments.records)
    stop = stop_on_signals()
    for value, where in _messages(settings.kafka, last=last, follow=arguments.follow, stop=stop):
        text = value.decode("utf-8", "replace") if arguments.json else line(Record.parse(value, where=where))
        print(text, flush=arguments.follow)
    return 0


def _messages(kafka: Kafka, *, last: int | None, follow: bool, stop: threading.Event) -> Iterator[tuple[bytes, str]]:
    """Yields the value and the place of each of the ``last`` committed records (None: all committed records), and with
    ``follow`` also of each new record.

    Raises UserError if Kafka returns an error or does not answer; raises Disconnected instead if all old records were
    read before.
    """
    consumer: Consumer | None = None
    topics: TailedTopic | TailedTopics | None = None
    try:
        require_first_only(kafka.properties(), kafka.topics().first)
        consumer = _consumer(kafka)
        if kafka.layout == SINGLE:
            topics = TailedTopic(consumer, kafka.properties(), kafka.topics(), last=last)
        else:
            topics = TailedTopics(consumer, kafka.properties(), kafka.topics(), last=last)
        while not stop.is_set() and not (topics.at_end and not follow):
            yield from topics.next(_POLL_SECONDS)
    except KafkaException as error:
        where = f"topic {kafka.topic} at {kafka.bootstrap_servers}"
        problem = question_error(error.args[0], kafka.properties(), where=where, group=_GROUP)
        if topics is not None and topics.at_end:
            raise Disconnected(problem.what, code=problem.code, where=problem.where, hint=problem.hint) from None
        raise problem from None
    finally:
        if consumer is not None:
            consumer.close()


def _consumer(kafka: Kafka) -> Consumer:
    own = {
        "group.id": _GROUP,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
    }
    return Consumer(kafka.properties() | own, logger=LIBRDKAFKA)


if __name__ == "__main__":
    sys.exit(main())
