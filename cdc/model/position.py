"""Defines a position in a leader's binlog: a file and the offset of an event in it."""

from typing import NamedTuple, Self

__all__ = ["Position", "file_number"]


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
