"""Keeps the index of a stream's records up to date, in a thread that works only while somebody looks at records."""

import threading
import time
from pathlib import Path

from cdc.browse.index import Index, State
from cdc.browse.query import Queries
from cdc.config.profile import Kafka
from cdc.errors import CdcError

__all__ = ["FollowedIndex"]

_SLICE_SECONDS = 2.0  # after so long the thread looks whether the program ends
_AGAIN_SECONDS = 0.2
_FRESH_SECONDS = 0.7  # an index that was read so recently is not read again for a page


class FollowedIndex:
    """The index of the topics of ``kafka``, in a file in ``folder``. It is read first when somebody asks for it.

    ``error`` is the reason why the newest reading failed, empty if it did not.
    """

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self._index = Index(kafka, folder, group="cdc-web")
        self.queries = Queries(self._index)
        self.error = ""
        self._wanted = threading.Event()
        self._done = threading.Condition()
        self._through = float("-inf")  # time.monotonic() at which the newest complete reading began

    def start(self, stop: threading.Event) -> None:
        """Starts the thread, which ends soon after ``stop`` is set."""
        threading.Thread(target=self._run, args=(stop,), name="index", daemon=True).start()

    def look(self, *, seconds: float) -> tuple[State, bool]:
        """The state of the index, after waiting up to ``seconds`` for what is in the topics now, and whether that was
        read: the brokers may be slow, or away.

        Raises UserError if the index's file can't be used.
        """
        begun = time.monotonic()
        self._wanted.set()
        with self._done:
            self._done.wait_for(lambda: self._through >= begun - _FRESH_SECONDS or self.error, seconds)
            is_fresh = self._through >= begun - _FRESH_SECONDS and not self.error
        return self._index.state(), is_fresh

    def _run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            if not self._wanted.wait(_SLICE_SECONDS):
                continue
            self._wanted.clear()
            self._read(stop)

    def _read(self, stop: threading.Event) -> None:
        """Reads until nothing is left that was in the topics at the beginning."""
        begun, error, before = time.monotonic(), "", None
        try:
            while not stop.is_set() and (left := self._index.refresh(stop=stop, seconds=_SLICE_SECONDS).behind):
                self.error = ""
                if left == before:  # another process reads them
                    stop.wait(_AGAIN_SECONDS)
                before = left
        except CdcError as failure:
            error = str(failure)
        except Exception as failure:  # noqa: BLE001 - a defect in the index must not end the other pages
            error = f"{type(failure).__name__}: {failure}"
        with self._done:
            self.error = error
            if not error:
                self._through = begun
            self._done.notify_all()
