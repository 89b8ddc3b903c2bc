"""Caches of the JSON text of dates and times of day by packed value: real columns have few different ones."""

from collections.abc import Callable

__all__ = ["CLOCKS", "DATES", "DAYS"]

_MAX_TEXTS = 50_000


class _Texts(dict[int, str]):
    """The text of each packed value; ``make`` computes a missing one."""

    def __init__(self, make: Callable[[int], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, packed: int) -> str:
        if len(self) >= _MAX_TEXTS:
            self.clear()
        text = self[packed] = self._make(packed)
        return text


def _day(packed: int) -> str:
    month = packed >> 5
    return f'"year":{month // 13},"month":{month % 13},"day":{packed & 31}'


def _clock(packed: int) -> str:
    return f'"hour":{packed >> 12},"minute":{packed >> 6 & 63},"second":{packed & 63}'


def _date(packed: int) -> str:
    return f'{{"Date":{{"year":{packed >> 9},"month":{packed >> 5 & 15},"day":{packed & 31}}}}}'


DATES = _Texts(_date)  # of DATE: year, month (4 bits), day (5 bits)
DAYS = _Texts(_day)  # the day of DATETIME: year * 13 + month, day (5 bits)
CLOCKS = _Texts(_clock)  # the time of day of DATETIME: hour, minute (6 bits), second (6 bits)
