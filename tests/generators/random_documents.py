"""Random JSON documents, and random expressions that change parts of one, as SQL."""

import json
from random import Random

from tests.generators.random_columns import json_node

__all__ = ["change", "document"]

# Among the keys are the server's own syntax of paths, characters that it quotes or escapes, and letters that it leaves
# bare: it tests the lowest byte of the code point (U+00A0 and U+0141 are letters there, U+20AC and U+3000 are not).
KEYS = [
    "a", "bb", "B", "", "1", "a b", 'quo"te', "back\\slash", "\n", "\x01", "\x7f", "$", "_x9", "last", "[0]", "a.b",
    "*", "é", "\xa0", "\x85", "Ł", "€", "\u3000", "\u2028", "😀", "longer key", "e\u0301", "array", "object", "Json",
]  # fmt: skip
PADDING = "x" * 400  # without it, most documents would be shorter than the differences


def document(chance: Random) -> str:
    """An object with most of ``KEYS``, whose values nest."""
    keys = chance.sample(KEYS, chance.randint(15, 25))
    members = [f"{_literal(key)},{_value(chance, 2)}" for key in keys]
    return f"JSON_OBJECT('padding','{PADDING}',{','.join(members)})"


def change(chance: Random, column: str) -> str:
    """``column`` changed by nested functions, as the server logs them as differences."""
    expression = column
    for _ in range(chance.choice([1, 1, 2, 3])):
        function = chance.choice(["JSON_SET", "JSON_SET", "JSON_REPLACE", "JSON_REMOVE"])
        arguments = [expression]
        for _ in range(chance.choice([1, 1, 2, 3])):
            arguments.append(_literal(_path(chance)))
            if function != "JSON_REMOVE":
                arguments.append(_value(chance, 0))
        expression = f"{function}({','.join(arguments)})"
    return expression


def _value(chance: Random, depth: int) -> str:
    if depth and chance.random() < 0.6:
        members = [_value(chance, depth - 1) for _ in range(chance.randint(0, 4))]
        if chance.random() < 0.5:
            return f"JSON_ARRAY({','.join(members)})"
        keys = chance.sample(KEYS, len(members))
        return f"JSON_OBJECT({','.join(f'{_literal(key)},{value}' for key, value in zip(keys, members, strict=True))})"
    return json_node(chance, 3)


def _path(chance: Random) -> str:
    legs = [f".{json.dumps(chance.choice(KEYS))}"]
    for _ in range(chance.choice([0, 1, 1, 2])):
        place = chance.choice(["0", "0", "1", "2", "9", "last", "last-1", "last-9"])
        legs.append(chance.choice([f"[{place}]", f"[{place}]", f".{json.dumps(chance.choice(KEYS))}"]))
    if chance.random() < 0.01:
        legs[0] = "[0]" if chance.random() < 0.5 else "[1]"  # of the object itself, which turns it into an array
    return "$" + "".join(legs)


def _literal(text: str) -> str:
    return f"CONVERT(0x{text.encode().hex()} USING utf8mb4)" if text else "''"
