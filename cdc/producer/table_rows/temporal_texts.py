"""The JSON texts of dates and times of day by the texts that the leader shows, kept: real columns have few of them."""

from cdc.producer.decode.column_code import KeptTexts

__all__ = ["CLOCKS", "DATES", "DATETIME_DAYS", "TIMES"]


def _day_text(shown: str) -> str:
    year, month, day = shown.split("-")
    return f'"year":{int(year)},"month":{int(month)},"day":{int(day)}'


def _clock_text(shown: str) -> str:
    hour, minute, second = shown.split(":")
    return f'"hour":{int(hour)},"minute":{int(minute)},"second":{int(second)}'


def _time_text(shown: str) -> str:
    negative = "true" if shown.startswith("-") else "false"
    return f'"negative":{negative},{_clock_text(shown.lstrip("-"))}'


DATES: KeptTexts[str] = KeptTexts(lambda shown: f'{{"Date":{{{_day_text(shown)}}}}}')
DATETIME_DAYS = KeptTexts(_day_text)
CLOCKS = KeptTexts(_clock_text)  # of DATETIME
TIMES = KeptTexts(_time_text)  # of TIME, without fraction
