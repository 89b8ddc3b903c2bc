"""Keeps an index of the records of one profile's topics in a file, and reads into it what is new in Kafka.

The file is made anew when it is gone, damaged, of another version of this module, or of other topics. It has at most
about ``most_bytes``: the entries with the lowest sequences are removed first, and ``State.oldest`` shows from which
sequence on the index is complete.
"""

import threading
from dataclasses import dataclass
from pathlib import Path

from cdc.config.profile import Kafka

__all__ = ["Index", "State"]


@dataclass(frozen=True, slots=True)
class State:
    """What the index contains: its ``entries`` are those of all records from sequence ``oldest`` up to ``newest`` that
    are in Kafka; both are None if it is empty. ``behind`` is the number of offsets that ``refresh`` has still to read,
    None before the first ``refresh``. ``bytes`` is the size of its content.
    """

    oldest: int | None
    newest: int | None
    entries: int
    bytes: int
    behind: int | None


class Index:
    """The index of the topics of ``kafka``, in a file in ``folder``, which is created for its owner alone.

    ``group`` names the consumer group, under which nothing is ever committed. All methods may be called by any thread.
    """

    def __init__(self, kafka: Kafka, folder: Path, *, group: str = "cdc-tail", most_bytes: int = 1_000_000_000) -> None:
        raise NotImplementedError

    def refresh(self, *, stop: threading.Event | None = None, seconds: float | None = None) -> State:
        """Reads what is new, up to the ends that the topics have now, until ``stop`` is set, or for about ``seconds``.

        If another thread or process does so already, returns at once. Raises UserError or Disconnected if Kafka does
        not answer, PromiseError for a message that is not a record.
        """
        raise NotImplementedError

    def state(self) -> State:
        """What the index contains now."""
        raise NotImplementedError
