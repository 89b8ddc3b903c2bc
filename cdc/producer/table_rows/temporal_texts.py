"""The JSON texts of dates and times of day by the texts that the leader shows, kept: real columns have few of them."""

from collections.abc import Callable

__all__ = ["CLOCKS", "DATES", "DATETIME_DAYS", "TIMES"]

_MOST_TEXTS = 50_000


class _Texts(dict[str, str]):
    def __init__(self, make: Callable[[str], str]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, shown: str) -> str:
        if len(self) >= _MOST_TEXTS:
            self.clear()
        text = self[shown] = self._make(shown)
        return text


def _day_text(shown: str) -> str:
    year, month, day = shown.split("-")
    return f'"year":{int(year)},"month":{int(month)},"day":{int(day)}'


def _clock_text(shown: str) -> str:
    hour, minute, second = shown.split(":")
    return f'"hour":{int(hour)},"minute":{int(minute)},"second":{int(second)}'


def _time_text(shown: str) -> str:
    negative = "true" if shown.startswith("-") else "false"
    return f'"negative":{negative},{_clock_text(shown.lstrip("-"))}'


DATES = _Texts(lambda shown: f'{{"Date":{{{_day_text(shown)}}}}}')
DATETIME_DAYS = _Texts(_day_text)
CLOCKS = _Texts(_clock_text)  # of DATETIME
TIMES = _Texts(_time_text)  # of TIME, without fraction
