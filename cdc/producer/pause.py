"""A pause of the producer, which an operator begins and ends while the producer runs."""

from dataclasses import dataclass

__all__ = ["Pause"]


@dataclass(slots=True)
class Pause:
    """``wanted`` is set by a thread that executes a command, at any time; ``holding`` is true while the producer reads
    and writes nothing.
    """

    wanted: bool = False
    holding: bool = False

    def command(self, wanted: bool, _: int = 0) -> str:
        """Executes the command ``pause`` or ``resume``; returns a sentence about its effect."""
        self.wanted = wanted
        return "the producer pauses between two transactions of the leader" if wanted else "the producer reads again"
