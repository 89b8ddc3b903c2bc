"""Shortens a statement about accounts to its command and its accounts. The result contains no secrets."""

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.sql.parser import SqlReader
from cdc.sql.tokens import tokens

__all__ = ["accounts"]

# Maps the first words of a statement to the word that precedes its accounts (manual, "Account Management Statements").
# The word is empty if the accounts follow the first words.
_FORMS = {
    ("CREATE", "USER"): "", ("ALTER", "USER"): "", ("DROP", "USER"): "", ("RENAME", "USER"): "",
    ("CREATE", "ROLE"): "", ("DROP", "ROLE"): "",
    ("GRANT",): "TO", ("REVOKE",): "FROM",
    ("SET", "PASSWORD"): "FOR", ("SET", "DEFAULT", "ROLE"): "TO", ("SET", "ROLE"): "",
}  # fmt: skip


def accounts(text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS) -> str:
    """Returns a text such as ``CREATE USER a@b, c``; empty for a statement that is not about accounts."""
    items = list(tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks))
    reader = SqlReader(items, "")
    words = next((words for words in _FORMS if reader.take(*words)), None)
    if words is None:
        return ""
    try:
        found = _named(reader, _FORMS[words])
    except ValueError:
        found = []
    return f"{' '.join(words)} {', '.join(found)}".rstrip()


def _named(reader: SqlReader, after: str) -> list[str]:
    if after:
        reader.skip_to(after)
    if not reader.take("IF", "NOT", "EXISTS"):
        reader.take("IF", "EXISTS")
    found = []
    # Each comma is followed by an account or a role; a password follows its account without a comma.
    for clause in reader.clauses():
        found.append(clause.account())
        if clause.take("TO"):
            found.append(clause.account())
    return found
