"""Makes text from a database safe to print: replaces invisible characters and those that control a terminal."""

import re

__all__ = ["UNSEEN", "visible"]

# Control characters, halves of surrogate pairs, and characters that change the direction of the text around them.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str, *, keep: str = "") -> str:
    """``text`` on one line, with a picture (␀ … ␡) or an escape for each invisible character but those in ``keep``."""
    return UNSEEN.sub(lambda match: match[0] if match[0] in keep else _picture(ord(match[0])), text)


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{code:04x}"
