"""Defines a position in a leader's binlog, and a partition of a Kafka topic, with their names."""

from typing import NamedTuple, Self

__all__ = ["Partition", "Position", "file_number", "partition_name", "partition_of"]


def file_number(file: str) -> int:
    """Returns the number in a binlog file's name. Compare these numbers, not the names, because binlog.1000000 follows
    binlog.999999.
    """
    return int(file.rpartition(".")[2])


class Position(NamedTuple):
    """A binlog file, and the offset in bytes at which an event begins."""

    file: str
    offset: int

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses the text that ``str`` returns. Raises ValueError."""
        file, _, offset = text.rpartition(":")
        return cls(file, int(offset))

    @property
    def place(self) -> tuple[int, int]:
        """The position as two numbers. They can be compared with another position on the same server, because
        binlog.1000000 follows binlog.999999.
        """
        return int(self.file.rpartition(".")[2]), self.offset


# Defines a partition of a Kafka topic, and its name ``topic/number`` in entries of the commit log.

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""


def partition_name(partition: Partition) -> str:
    """Returns the name ``topic/number`` of a partition."""
    return f"{partition[0]}/{partition[1]}"


def partition_of(name: str) -> Partition:
    """Parses the name that ``partition_name`` returns. Raises ValueError."""
    topic, _, number = name.rpartition("/")
    return topic, int(number)
