"""Measures the CPU time of each of cdc-consumer's stages, one after the other, over a topic held in memory."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from cdc.config.profile import Profile, load
from cdc.consumer.apply.row_by_row import RowDifferences
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.plan.packets import packets
from cdc.consumer.plan.planner import plan
from cdc.consumer.plan.rendered_rows import RecordParser
from cdc.consumer.plan.statements import statements
from cdc.consumer.source.assembler import Batch, Located, assemble, batches
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.model.record import Record

__all__ = ["end_of_topic", "measure_stages"]


def measure_stages(target: Path, *, since: int, count: int) -> None:
    """Prints the microseconds for each of ``count`` units of work, which are in the topic from offset ``since`` on.

    ``target`` is the consumer's profile; its follower's table definitions are read, and nothing is changed.
    """
    profile, spent = load(target), dict[str, float]()
    values = list(_values(profile, since))
    gc.set_threshold(1_000_000, 50, 1000)  # the threshold of cdc-consumer
    with Session(profile.database) as session:
        session.connect()
        tables = SchemaCache(session, Triggers(session, drop=False, passes=lambda _: True), passes=lambda _: True)
        differences = RowDifferences(session, tables)
        made = _batches(profile, values)
        while True:
            with _timed(spent, "parse, join and free"):
                batch = next(made, None)
            if batch is None:
                break
            shapes = {uri: tables.shape(uri) for uri in {record.uri for record in batch.records}}
            with _timed(spent, "plan"):
                steps = plan(batch.records, schema=shapes.__getitem__)
            with _timed(spent, "SQL text"):
                sql = statements(
                    steps, generated=tables.generated, comparable=differences.comparable, loadable=tables.loadable
                )
                sum(map(len, packets(sql, limit=session.max_packet)))
            # Freed with its transactions as soon as the next one starts.
            del batch, steps, sql
    shown = ", ".join(f"{stage} {seconds / count * 1e6:.1f}" for stage, seconds in spent.items())
    print(f"{'':26}of its CPU, µs each: {shown}", flush=True)


def end_of_topic(target: Path) -> int:
    """The offset after the newest record of the only partition."""
    consumer = _consumer(load(target))
    _, end = consumer.get_watermark_offsets(TopicPartition("bench", 0))
    consumer.close()
    return int(end)


def _values(profile: Profile, since: int) -> Iterator[bytes]:
    consumer = _consumer(profile)
    consumer.assign([TopicPartition("bench", 0, since)])
    while (message := consumer.poll(10)) is not None and message.error() is None:
        yield message.value() or b""
    consumer.close()


def _consumer(profile: Profile) -> Consumer:
    return Consumer(
        {"bootstrap.servers": profile.kafka.bootstrap_servers, "group.id": "bench", "enable.partition.eof": True,
         "isolation.level": "read_committed"}
    )  # fmt: skip


def _batches(profile: Profile, values: list[bytes]) -> Iterator[Batch | None]:
    place, first = TopicIdPartition("bench", 0, ""), Record.parse(values[0], where="").sequence
    parser = RecordParser()
    located = (Located(place, at, parser.parse(value, where=""), len(value)) for at, value in enumerate(values))
    whole = assemble(located, resource=profile.mysql_resource_name, next_sequence=first)
    return batches(whole, rows=profile.consumer.batch_rows)


@contextmanager
def _timed(spent: dict[str, float], stage: str) -> Iterator[None]:
    begun = time.process_time()
    yield
    spent[stage] = spent.get(stage, 0.0) + time.process_time() - begun
