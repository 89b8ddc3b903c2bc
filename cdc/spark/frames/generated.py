"""Which columns of a table a server computes from others, by the statements that defined them. Pure.

Records have values of such columns as of any other, and do not tell that they are computed.
"""

from collections.abc import Collection, Iterator, Sequence

from cdc.spark.frames.told import History, Statement
from cdc.sql.tokens import Token, tokens

__all__ = ["generated_columns"]

_LIKE = 12  # words up to LIKE in CREATE TEMPORARY TABLE IF NOT EXISTS d.t (LIKE …
_WORDS = 4  # of a definition in which the column's name is: CHANGE COLUMN old new


def generated_columns(history: History, tables: Collection[str]) -> frozenset[str]:
    """Names, without case, that columns of tables with these names may have which are computed; some more, too, as
    words of their definitions are taken for names."""
    wanted, found, about = {each.casefold() for each in tables}, set[str](), list[list[Token]]()
    for _, statement in sorted(history.statements.items(), reverse=True):
        words = _words(statement)
        names = {each.text.casefold() for each in words if each.kind in ("word", "quoted")}
        if wanted.isdisjoint(names):
            continue
        about.append(words)
        if any(each.word() == "LIKE" for each in words[:_LIKE]):
            wanted |= names  # it has the columns that the other table had before
    for words in reversed(about):
        found |= set(_computed(words))
        found |= {new for old, new in _renamed(words) if old in found}
    return frozenset(found)


def _words(statement: Statement) -> list[Token]:
    modes = statement.sql_mode
    quotes, escapes = "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" not in modes
    return list(tokens(statement.text, ansi_quotes=quotes, backslash_escapes=escapes))


def _computed(words: Sequence[Token]) -> Iterator[str]:
    """The first words of each definition that has AS and a bracket."""
    opened = [0]  # where the definition begins that is read now, on each level of brackets
    for at, token in enumerate(words):
        if token == Token("mark", "("):
            if at and words[at - 1].word() == "AS":
                yield from (each.text.casefold() for each in words[opened[-1] : at - 1][:_WORDS])
            opened.append(at + 1)
        elif token == Token("mark", ")") and len(opened) > 1:
            opened.pop()
        elif token == Token("mark", ","):
            opened[-1] = at + 1
        elif len(opened) == 1 and token.word() in ("ADD", "MODIFY", "CHANGE"):
            opened[-1] = at  # the first clause, behind the table's name


def _renamed(words: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for at, token in enumerate(words[: len(words) - 4]):
        if token.word() == "RENAME" and words[at + 1].word() == "COLUMN" and words[at + 3].word() == "TO":
            yield words[at + 2].text.casefold(), words[at + 4].text.casefold()
