"""Adapts how many bytes go into one Kafka transaction: fewer where commits are slow, up to the profile's limit."""

__all__ = ["BatchSize"]

_MIN_BYTES = 65_536
_SLOW_SECONDS = 10.0  # a commit that takes longer halves the size; one that takes a tenth of it may double the size
_FIRST_PATIENCE, _MAX_PATIENCE = 10.0, 40.0


class BatchSize:
    """Lives as long as the process. ``bytes`` is the current limit, ``limit`` that of the profile.

    ``message_bytes`` is how many bytes may go into one message (profile key producer.message_bytes).

    ``patience`` is for how many seconds the brokers may take none of the bytes before they count as away: the smaller
    the batches had to become, the slower is the network, and a single message may take long.
    """

    def __init__(self, limit: int, message_bytes: int = 8_000_000) -> None:
        self._limit = limit
        self.message_bytes = message_bytes
        self.bytes = limit
        self.patience = _FIRST_PATIENCE

    def failed(self) -> None:
        """Adapt to a commit that the brokers did not accept in time."""
        self._halve()
        self.patience = min(2 * self.patience, _MAX_PATIENCE)

    def committed(self, size: int, seconds: float) -> None:
        """Adapt to a commit of ``size`` bytes that took ``seconds``.

        A size far below the limit, as of the entry with which a session begins, shows nothing about the network.
        """
        if seconds > _SLOW_SECONDS:
            self._halve()
        elif seconds < _SLOW_SECONDS / 10 and 2 * size >= self.bytes:
            self.bytes = min(2 * self.bytes, self._limit)
            self.patience = max(self.patience / 2, _FIRST_PATIENCE)

    def _halve(self) -> None:
        self.bytes = min(self._limit, max(_MIN_BYTES, self.bytes // 2))
