"""Defines a partition of a Kafka topic, and its name ``topic/number`` in entries of the commit log."""

__all__ = ["Partition", "partition_name", "partition_of"]

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""


def partition_name(partition: Partition) -> str:
    """Returns the name ``topic/number`` of a partition."""
    return f"{partition[0]}/{partition[1]}"


def partition_of(name: str) -> Partition:
    """Parses the name that ``partition_name`` returns. Raises ValueError."""
    topic, _, number = name.rpartition("/")
    return topic, int(number)
