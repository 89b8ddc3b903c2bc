"""Which statements have changed what is to be created, while it is read: it is read again, without what is the same.

Pure.
"""

from collections.abc import Callable, Iterable

from cdc.sql.effects import Effect

__all__ = ["Creations"]

_TELL_SECONDS = 30.0
_OF_TABLES = ("Table", "Index", "View")


class Creations:
    """The effects of statements since it was asked for last, and how often it was asked for."""

    def __init__(self) -> None:
        self._changed: list[Effect] = []
        self._told: float | None = None
        self.tries = 0

    def note(self, effects: Iterable[Effect], wants_table: Callable[[str, str], bool]) -> bool:
        """Take notice of a statement; whether it may have changed anything of what passes ``wants_table``."""
        changed = [effect for effect in effects if _may_pass(effect, wants_table)]
        self._changed += changed
        return bool(changed)

    def ask(self, now: float) -> tuple[Effect, ...]:
        """It is asked for: what has been changed since the last time."""
        changed, self._changed = tuple(self._changed), []
        self.tries += 1
        if self._told is None:
            self._told = now
        return changed

    def is_late(self, now: float) -> bool:
        """Whether it is time to say, once more, that it is read again and again."""
        if self._told is None or now < self._told + _TELL_SECONDS:
            return False
        self._told = now
        return True


def _may_pass(effect: Effect, wants_table: Callable[[str, str], bool]) -> bool:
    if effect.name is None or not effect.action.endswith(_OF_TABLES):
        return True
    return wants_table(effect.database, effect.name) or (effect.to is not None and wants_table(*effect.to))
