"""Questions to data: each is a frame of few rows and how the answer is read from them. Several are asked together.

A job costs more than a tiny audit's rows do: it is planned, its functions are prepared and its plan is sent, by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdc.spark.input.one_part import in_one_part, is_tiny

__all__ = ["Question", "answers"]

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Question(Generic[Answer]):
    """What ``read`` tells from the ``rows`` of a frame."""

    rows: DataFrame
    read: Callable[[Sequence[Row]], Answer]

    def answer(self) -> Answer:
        """The answer, by a job of its own."""
        return self.read(self.rows.collect())


def answers(*questions: Question[Any]) -> list[Any]:
    """The answers to all ``questions``: in a tiny audit by one job, else one after the other.

    In a large audit tasks of several questions that need the same data at once would wait for it, or compute it twice.
    """
    if len(questions) < 2 or not is_tiny(questions[0].rows):
        return [each.answer() for each in questions]
    named = {f"q{number}": each for number, each in enumerate(questions)}
    frames = [each.rows.select(F.struct("*").alias(name)) for name, each in named.items()]
    together = reduce(lambda one, two: one.unionByName(two, allowMissingColumns=True), frames)
    found = in_one_part(together).collect()
    return [each.read([row[name] for row in found if row[name] is not None]) for name, each in named.items()]
