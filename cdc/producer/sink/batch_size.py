"""How much goes into one Kafka transaction: all that is allowed, less where the link is slow. Pure."""

__all__ = ["BatchSize"]

_LEAST_BYTES = 65_536
_FIRST_SECONDS, _MOST_SECONDS = 10.0, 40.0


class BatchSize:
    """Lives as long as the process. ``bytes`` is the limit for now, ``most`` is that of the profile.

    ``patience`` says for how many seconds the brokers may take nothing of it before they count as away: the smaller the
    batch had to become, the slower is the link, and one message alone may take long.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.bytes = most
        self.patience = _FIRST_SECONDS

    def failed(self) -> None:
        """The brokers did not take it in time."""
        self.bytes = min(self._most, max(_LEAST_BYTES, self.bytes // 2))
        self.patience = min(2 * self.patience, _MOST_SECONDS)

    def took(self, size: int, seconds: float) -> None:
        """``size`` bytes are committed, after so many ``seconds``: the next may be more if that was quick.

        What is far below the limit, as the entry with which a session begins, says nothing of the link.
        """
        if seconds > _FIRST_SECONDS:
            self.bytes = min(self._most, max(_LEAST_BYTES, self.bytes // 2))
        elif seconds < _FIRST_SECONDS / 10 and 2 * size >= self.bytes:
            self.bytes = min(2 * self.bytes, self._most)
            self.patience = max(self.patience / 2, _FIRST_SECONDS)
