"""Turns the content of a TIMESTAMP value into the text of its UTC date and time, as MySQL reads and writes it."""

import time
from functools import lru_cache

__all__ = ["timestamp_text"]

_DAY_SECONDS = 86_400
# Looking a number's text up takes half the time of formatting it.
_TWO_DIGITS = tuple(f"{number:02d}" for number in range(60))


def timestamp_text(unix_time: int) -> str:
    """``YYYY-MM-DD HH:MM:SS`` in UTC for seconds since 1970, without the fraction; 0 is MySQL's zero timestamp.

    Raises OSError, OverflowError, TypeError or ValueError for what is no such number.
    """
    if unix_time == 0:
        # The type begins one second after the epoch, and the zero timestamp has no fraction.
        return "0000-00-00 00:00:00"
    day, seconds = divmod(unix_time, _DAY_SECONDS)
    minutes = seconds // 60
    return f"{_date(day)} {_TWO_DIGITS[minutes // 60]}:{_TWO_DIGITS[minutes % 60]}:{_TWO_DIGITS[seconds % 60]}"


@lru_cache(maxsize=30_000)  # TIMESTAMPs end in 2038, after fewer days
def _date(day: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(day * _DAY_SECONDS))
