"""Whether a lake's topics are those that it was made of, and tell all of its tables."""

from collections.abc import Callable, Iterator, Mapping

from cdc.errors import UserError
from cdc.lake.folder import State
from cdc.spark.ddl.lineage import Name, table_name
from cdc.spark.frames.messages import Source
from cdc.spark.frames.told import History, untold
from cdc.spark.input.spans import topic_ids

__all__ = ["refused_tables", "same_topics"]


def same_topics(source: Source, state: State, *, lake: str) -> Mapping[str, str]:
    """Kafka's ids of the topics. Raises UserError where one was created again since the lake was made."""
    ids = topic_ids(source.kafka, source.span)
    for name, known in state.topics.items():
        if ids.get(name, known) != known:
            raise UserError(
                f"the topic {name} was deleted and created again since the lake was made",
                where=f"option --to {lake}",
                hint="name another folder, or remove this one to have the lake made again",
            )
    return {**state.topics, **ids}


def refused_tables(
    history: History, upto: int, last: Mapping[str, int], selects: Callable[[Name], bool]
) -> Iterator[tuple[Name, UserError]]:
    """Tables that have rows up to ``upto``, as ``last`` says by URI, and nothing else: not even that they are there."""
    of_names = {name: sequence for uri, sequence in last.items() if (name := table_name(uri))}
    for name in filter(selects, untold(history, upto, of_names)):
        yield name, UserError(
            "the stream has rows of the table and nothing that tells its columns, which retention has cut",
            where=f"table {'.'.join(name)}, sequence {upto}",
            hint=f"copy the table again: cdc-producer PROFILE --copy {'.'.join(name)}",
        )  # fmt: skip
