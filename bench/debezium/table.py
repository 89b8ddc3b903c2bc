"""The comparison as a table in Markdown. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["NOT_RUN", "Row", "heading", "line", "percentile"]

NOT_RUN = "not run"


@dataclass(frozen=True)
class Row:
    """A question, and for each pipeline its answer; one that has none was not asked."""

    question: str
    answers: Mapping[str, str]


def heading(pipelines: Sequence[str]) -> list[str]:
    return [_joined(["", *pipelines]), "|".join(["", *["---"] * (len(pipelines) + 1), ""])]


def line(row: Row, pipelines: Iterable[str]) -> str:
    return _joined([row.question, *(row.answers.get(name, NOT_RUN) for name in pipelines)])


def _joined(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


def percentile(values: Iterable[float], share: int) -> float:
    """The value that ``share`` percent of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]
