"""Adds the options that all programs have, renders their completion for a shell, and prints the list of a program's
checks.
"""

import argparse
import logging
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cdc import __version__
from cdc.errors import CdcError
from cdc.model.values import visible

__all__ = ["CheckList", "add_common_options", "not_negative", "positive"]

_SHELLS = ("bash", "zsh")
_MOST = 1_000_000_000


def add_common_options(parser: argparse.ArgumentParser, *, examples: str) -> None:
    """Adds ``--version`` and ``--completion``, and shows ``examples``, one per line, at the end of the help."""
    parser.add_argument("--version", action="version", version=f"cdc {__version__}")
    parser.add_argument(
        "--completion", choices=_SHELLS, action=_Completion, help="print the completion of these options for a shell"
    )
    lines = "\n".join(f"  {line.strip()}" for line in examples.strip().splitlines())
    parser.epilog = "\n".join(filter(None, (parser.epilog and parser.epilog.rstrip() + "\n", f"examples:\n{lines}")))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def not_negative(text: str) -> int:
    """Parses an integer that is not negative, the value of an option. Raises ArgumentTypeError."""
    if not text.isascii() or not text.isdecimal() or int(text) > _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 0 to {_MOST}")
    return int(text)


def positive(text: str) -> float:
    """Parses a number above 0, the value of an option. Raises ArgumentTypeError, also for numbers for which no program
    can wait (``inf``)."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, up to {_MOST}")
    return number


class _Completion(argparse.Action):
    """Prints the completion and ends the program, like ``--help``, so that no other argument is needed."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        print(_script(parser, str(values)), end="")
        parser.exit()


def _script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Returns the completion of the program's options, of its commands, and of the fixed values of an option; the shell
    completes all other words as file names.
    """
    name = parser.prog.replace("-", "_").replace(".", "_")
    cases = "".join(f'    {option}) choices="{" ".join(values)}" ;;\n' for option, values in _choices(parser))
    commands = _commands(parser)
    words = " ".join(_options(parser))
    of_command = "".join(f'    {each}) words="{" ".join(_options(of))}" ;;\n' for each, of in commands.items())
    before = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return f"""\
{before}_{name}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words="{" ".join(commands)}" choices=""
  case $word in -*) words="{words}" ;; esac
  case ${{COMP_WORDS[1]}} in
{of_command}    *) ;;
  esac
  case ${{COMP_WORDS[COMP_CWORD-1]}} in
{cases}    *) ;;
  esac
  if [ -n "$choices" ]; then words=$choices; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _{name} {parser.prog}
"""


def _options(parser: argparse.ArgumentParser) -> list[str]:
    shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    return [option for action in shown for option in action.option_strings if option.startswith("--")]


def _choices(parser: argparse.ArgumentParser) -> Iterator[tuple[str, Sequence[str]]]:
    for each in (parser, *_commands(parser).values()):
        for action in each._actions:
            for option in action.option_strings:
                if action.choices:
                    yield option, list(map(str, action.choices))


def _commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0]) if found else {}


# Prints the result of a program's checks of its servers as a list: settings that are right, notes, and problems with
# their remedies.

_MARGIN = 9
_PROBLEM = 2  # the exit status


class CheckList:
    """A list of items on standard output. On a terminal the text is wrapped; elsewhere each item is one line."""

    def __init__(self) -> None:
        self.problems = 0
        self._columns = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0

    def fine(self, what: str) -> None:
        """Prints an item that needs no change."""
        self._print("ok", what, "")

    def note(self, what: str, *, hint: str = "") -> None:
        """Prints an item that an operator may want to change."""
        self._print("note", what, hint)

    def problem(self, error: CdcError) -> None:
        """Prints the problems that prevent the program's work, one item for each problem in ``error``."""
        for what in error.each or (error.what,):
            self.problems += 1
            where = f"; at {error.where}" if error.where else ""
            self._print("problem", f"[{error.code}] {what}{where}", error.hint)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """If a CdcError ends the ``with`` block, prints it as a problem; the program continues after the block."""
        try:
            yield
        except CdcError as error:
            self.problem(error)

    @contextmanager
    def with_log(self) -> Iterator[None]:
        """Prints the events that are logged in the ``with`` block as notes, instead of writing them to the log."""
        root, handler = logging.getLogger("cdc"), _Notes(self)
        former, level = root.handlers[:], root.level
        root.handlers[:] = [handler]
        root.setLevel(logging.INFO)
        try:
            yield
        finally:
            root.handlers[:] = former
            root.setLevel(level)

    def end(self) -> int:
        """Prints the number of problems, and returns the exit status: 0 without problems, otherwise 2."""
        count = f"{self.problems} problem{'s' if self.problems > 1 else ''}" if self.problems else "no problems"
        print(f"{count}; nothing was written anywhere", flush=True)
        return _PROBLEM if self.problems else 0

    def _print(self, kind: str, what: str, hint: str) -> None:
        what, hint = (" ".join(visible(text).split()) for text in (what, hint and f"hint: {hint}"))
        if not self._columns:
            print(f"{kind:{_MARGIN}}{'; '.join(filter(None, (what, hint)))}")
            return
        for number, text in enumerate(filter(None, (what, hint))):
            first = f"{'' if number else kind:{_MARGIN}}"
            # A word is never broken, so that names and statements can be copied from a terminal.
            print(
                textwrap.fill(
                    text,
                    max(40, self._columns - 1),
                    initial_indent=first,
                    subsequent_indent=" " * _MARGIN,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
            )


class _Notes(logging.Handler):
    """Prints logged events as notes, except the messages of libraries, since the program's errors contain these."""

    def __init__(self, items: CheckList) -> None:
        super().__init__()
        self._items = items

    def emit(self, record: logging.LogRecord) -> None:
        # That a broker does not answer is in the list already, as a problem with its reason.
        if not hasattr(record, "fields") or record.getMessage() == "kafka unreachable":
            return
        fields = dict(record.fields)
        hint = str(fields.pop("hint", ""))
        more = ", ".join(f"{name} {value}" for name, value in fields.items())
        self._items.note(": ".join(filter(None, (record.getMessage(), more))), hint=hint)
