"""Adds the options that all programs have, and renders the completion of a program's options for a shell."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from cdc import __version__

__all__ = ["add_common_options"]

_SHELLS = ("bash", "zsh")


def add_common_options(parser: argparse.ArgumentParser, *, examples: str) -> None:
    """Adds ``--version`` and ``--completion``, and shows ``examples``, one per line, at the end of the help."""
    parser.add_argument("--version", action="version", version=f"cdc {__version__}")
    parser.add_argument(
        "--completion", choices=_SHELLS, action=_Completion, help="print the completion of these options for a shell"
    )
    lines = "\n".join(f"  {line.strip()}" for line in examples.strip().splitlines())
    parser.epilog = "\n".join(filter(None, (parser.epilog and parser.epilog.rstrip() + "\n", f"examples:\n{lines}")))
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


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
