"""Keeps the index of a stream's records up to date, in a thread that reads only when a page of records is requested."""

import threading
import time
from pathlib import Path

from cdc.browse.index import Index, State
from cdc.browse.query import Queries
from cdc.config.profile import Kafka
from cdc.errors import CdcError

__all__ = ["FollowedIndex"]

_SLICE_SECONDS = 2.0  # the interval at which the thread checks whether the program ends
_AGAIN_SECONDS = 0.2  # the pause while another process adds the records
_FRESH_SECONDS = 0.7  # a page does not wait for new records if the index was updated more recently than this


class FollowedIndex:
    """The index of the topics of ``kafka``, in a file in ``folder``, which is filled when a page is first requested.

    ``error`` is the reason why the newest update failed; it is empty if the update succeeded.
    """

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self._index = Index(kafka, folder, group="cdc-web")
        self.queries = Queries(self._index)
        self.error = ""
        self._wanted = threading.Event()
        self._done = threading.Condition()
        self._through = float("-inf")  # time.monotonic() at the beginning of the newest complete update

    def start(self, stop: threading.Event) -> None:
        """Starts the thread, which ends soon after ``stop`` is set."""
        threading.Thread(target=self._run, args=(stop,), name="index", daemon=True).start()

    def look(self, *, seconds: float) -> tuple[State, bool]:
        """Waits up to ``seconds`` until the index contains all records that are in the topics now. Returns the index's
        state, and whether it contains these records; it does not if the brokers are slow or do not answer.

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
        """Updates the index until it contains all records that are in the topics now."""
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
