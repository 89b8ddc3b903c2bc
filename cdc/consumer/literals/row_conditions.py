"""The condition that finds a row on the follower: by its key, or by all its values."""

from collections.abc import Callable, Mapping

from cdc.consumer.literals.rounded import NONE_ROUNDED, Rounded
from cdc.consumer.literals.values import equal, exact
from cdc.model.record import Record
from cdc.model.values import Value

__all__ = ["key_indexes", "matcher"]


def matcher(record: Record, rounded: Mapping[str, Rounded] = NONE_ROUNDED) -> Callable[[list[Value]], str]:
    """The condition that finds a row by its before-image: by its key or, without one, by all its exact values."""
    if record.key is not None:
        key = [(index, record.columns[index]) for index in key_indexes(record)]
        return lambda image: " AND ".join([equal(column, image[index], rounded) for index, column in key])
    columns = record.columns
    return lambda image: " AND ".join(map(exact, columns, image)) + " LIMIT 1"


def key_indexes(record: Record) -> list[int]:
    """Where the columns of the key are in the record's images."""
    return [record.columns.index(column) for column in record.key or ()]
