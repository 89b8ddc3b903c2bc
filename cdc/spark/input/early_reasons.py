"""Finds reasons why an audit could not judge, using only profiles and brokers: without Spark, in less than a second."""

import time
from collections.abc import Iterator, Mapping

from cdc.config.filters import Filters
from cdc.config.profile import Profile
from cdc.model.position import partition_name
from cdc.spark.input.spans import Span, newest_entry_us

__all__ = ["early_reasons", "left_out_notes", "too_old"]


def early_reasons(
    profiles: Mapping[str, Profile],
    spans: Mapping[str, Span],
    own: str,
    *,
    kept: bool = False,
    max_age: float | None = None,
) -> Iterator[str]:
    """Finds reasons in the producers' ``profiles`` and their topics' ``spans``, both by side.

    ``own`` is the consumer's own database. ``kept`` is true if the state of an earlier audit may contain the records
    that retention has deleted. The audit would find all these reasons itself, but only after minutes; the user can
    correct their causes now. Raises UserError if the brokers don't answer.
    """
    *_, follower = profiles.values()
    yield from left_out_notes(follower.filters, own)
    for side, profile in profiles.items():
        topic = profile.kafka.topic
        if not spans[side].size:
            yield f"topic {topic} has no records yet: is the cdc-producer of the {side} running?"
        cut = [(each, begin) for each, (begin, _) in spans[side].partitions.items() if begin > 0]
        for partition, begin in [] if kept else cut[:1]:
            yield (
                f"topic {topic} begins at offset {begin} of partition {partition_name(partition)}: retention cut what "
                "came before; set retention.ms=-1"
            )
        if max_age is not None:
            newest = newest_entry_us(profile.kafka, resource=profile.mysql_resource_name)
            yield from too_old(side, topic, None if newest is None else time.time() - newest / 1e6, max_age)


def left_out_notes(filters: Filters, own: str) -> Iterator[str]:
    """Reports tables of the consumer's ``own`` database that the audit needs, but that the filters of the follower's
    producer leave out.
    """
    if not filters.wants_database(own):
        yield f"the follower profile's filters leave out database {own}, where the checkpoint is"
    elif not filters.wants_table(own, "ledger"):
        yield f"the follower profile's filters leave out {own}.ledger, which tells the statements that the consumer ran"


def too_old(side: str, topic: str, age: float | None, max_age: float) -> Iterator[str]:
    """Reports the newest entry of a commit log if it is too old. ``age`` is in seconds, None without an entry."""
    if age is None or age > max_age:
        how = "without an entry" if age is None else f"{age:.0f} s old"
        yield (
            f"the commit log of the {side}'s topic {topic} is {how}, and --max-age is {max_age:g}: "
            "is its cdc-producer running?"
        )
