"""Random column types with random values for them, as SQL. Pure: the same ``Random`` gives the same."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tests.harness.server_pool import ON_80

__all__ = ["RandomColumn", "json_node", "random_column"]

# Character sets in which any bytes are text, and those that need text of their own.
_BYTEWISE = "latin1 latin2 latin5 latin7 cp850 cp852 cp866 cp1250 cp1251 cp1256 cp1257 koi8r koi8u dec8 hp8 swe7"
_BYTEWISE += " greek hebrew macce macroman keybcs2 armscii8 geostd8 tis620"
_WIDE = "utf8mb4 utf8mb3 ascii ucs2 utf16 utf16le utf32 big5 gb2312 gbk gb18030 sjis cp932 ujis eucjpms euckr"
# A follower of MySQL 8.0 stores a TIME of 32 hours or more in a document as another one.
_HOURS = 31 if ON_80 else 800
_CHARSETS = [*_BYTEWISE.split(), *_WIDE.split(), *["utf8mb4"] * 12, *["latin1"] * 4]
_PAIRS = ("ucs2", "utf16", "utf16le", "utf32")
_ALPHABETS = ["abcABC 09", "äöüßéèÅ", "абвЖ", "中文字典", "あいう", "한글", "🐹😀", "'\"\\`%_", "\0\n\x1a\u2028", "  "]

Values = Callable[[Random], str]


@dataclass(frozen=True)
class RandomColumn:
    """A column's name, its SQL type, a source of values, and its uses.

    ``index`` is the column in a key, or empty if no key can have it; ``in_json``: JSON functions accept it.
    """

    name: str
    type: str
    values: Values
    index: str
    in_json: bool = True

    def definition(self, *, nullable: bool) -> str:
        """The column in CREATE TABLE and ALTER TABLE, up to its NULL or NOT NULL."""
        return f"`{self.name}` {self.type} {'NULL' if nullable else 'NOT NULL'}"

    def renamed(self, name: str) -> "RandomColumn":
        return replace(self, name=name, index=self.index.replace(f"`{self.name}`", f"`{name}`"))


def random_column(chance: Random, name: str, *, vectors: bool) -> RandomColumn:
    """A column of any type; ``vectors``: the server has VECTOR."""
    makers = [_integer] * 3 + [_decimal, _float, _bit, _year] + [_temporal] * 4 + [_text] * 5 + [_binary] * 3
    makers += [_members] * 3 + [_document] * 2 + [_geometry] + ([_vector] if vectors else [])
    return chance.choice(makers)(chance, name)


def _hex(data: bytes) -> str:
    return f"x'{data.hex()}'"


def _bytes(chance: Random, most: int) -> bytes:
    size = chance.choice([0, 1, most, chance.randint(0, most)])
    return bytes(chance.choice([0, 0x20, 0xFF, 0x81, chance.randrange(256)]) for _ in range(size))


def _string(chance: Random, most: int) -> str:
    alphabet = chance.choice(_ALPHABETS)
    return "".join(chance.choice(alphabet) for _ in range(chance.choice([0, 1, chance.randint(0, most)])))


def _integer(chance: Random, name: str) -> RandomColumn:
    kind, bits = chance.choice([("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24), ("INT", 32), ("BIGINT", 64)])
    unsigned = chance.random() < 0.5
    low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
    suffix = chance.choice([" UNSIGNED", " UNSIGNED ZEROFILL"]) if unsigned else ""

    def values(chance: Random) -> str:
        return str(chance.choice([low, high, 0, 1, chance.randint(low, high)]))

    return RandomColumn(name, kind + suffix, values, f"`{name}`")


def _decimal(chance: Random, name: str) -> RandomColumn:
    precision = chance.randint(1, 65)
    scale = chance.randint(0, min(30, precision))
    largest = 10**precision - 1

    def values(chance: Random) -> str:
        return _point(chance.choice([0, 1, largest, -largest, chance.randint(-largest, largest)]), scale)

    return RandomColumn(name, f"DECIMAL({precision},{scale})", values, f"`{name}`")


def _point(digits: int, scale: int) -> str:
    text = f"{abs(digits):0{scale + 1}d}"
    whole, fraction = (text[:-scale], text[-scale:]) if scale else (text, "0")
    return f"{'-' if digits < 0 else ''}{whole}.{fraction}"


def _float(chance: Random, name: str) -> RandomColumn:
    kind = chance.choice(["FLOAT", "DOUBLE", "FLOAT(9,3)", "DOUBLE(15,4)"])

    def values(chance: Random) -> str:
        number = chance.choice([0.0, -0.0, 0.1, chance.uniform(-1000, 1000)])
        if "(" not in kind:
            number = chance.choice([number, 1e30, chance.gauss(0, 1) * 10 ** chance.randint(-38, 37)])
        return repr(number) if "e" in repr(number) else f"{number!r}e0"

    return RandomColumn(name, kind, values, f"`{name}`")


def _bit(chance: Random, name: str) -> RandomColumn:
    width = chance.randint(1, 64)
    return RandomColumn(name, f"BIT({width})", lambda chance: str(chance.getrandbits(width)), f"`{name}`")


def _year(chance: Random, name: str) -> RandomColumn:
    return RandomColumn(name, "YEAR", lambda chance: chance.choice(["0", "1901", "2155", "1999"]), f"`{name}`")


def _temporal(chance: Random, name: str) -> RandomColumn:
    digits = chance.choice([0, 0, 1, 2, 3, 4, 5, 6])
    kind = chance.choice(["DATE", "TIME", "DATETIME", "TIMESTAMP"])
    precision = f"({digits})" if digits and kind != "DATE" else ""

    def values(chance: Random) -> str:
        fraction = f"{chance.choice([0, 1, 10**6 - 1, chance.randrange(10**6)]):06d}"
        clock = f"{chance.randrange(24):02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d}.{fraction}"
        if kind == "TIME":
            return f"'{chance.choice(['', '-'])}{chance.choice(['00:00:00', '838:59:59', clock])}'"
        if kind == "TIMESTAMP":
            year = chance.randint(1971, 2037)
            return chance.choice(["0", f"'{year}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d} {clock}'"])
        # Parts that are zero and days that a month does not have are values too.
        day = f"{chance.choice([0, 1, 1999, 9999]):04d}-{chance.randint(0, 12):02d}-{chance.randint(0, 31):02d}"
        day = chance.choice(["0000-00-00", day])
        return f"'{day}'" if kind == "DATE" else f"'{day} {clock}'"

    in_json = kind != "TIME" or _HOURS > 31
    return RandomColumn(name, kind + precision, values, f"`{name}`", in_json=in_json)


def _text(chance: Random, name: str) -> RandomColumn:
    charset = chance.choice(_CHARSETS)
    kind = chance.choice(["CHAR(20)", "VARCHAR(20)", "VARCHAR(300)", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"])

    def values(chance: Random) -> str:
        if charset in _BYTEWISE and chance.random() < 0.5:
            return f"_{charset} {_hex(_bytes(chance, 20))}"
        return f"CONVERT(_utf8mb4 {_hex(_string(chance, 20).encode())} USING {charset})"

    index = f"`{name}`" if kind in ("CHAR(20)", "VARCHAR(20)") else f"`{name}`(10)"
    # The server puts the bytes of such texts into documents as if they were another text, which SELECT can't show.
    return RandomColumn(name, f"{kind} CHARACTER SET {charset}", values, index, in_json=charset not in _PAIRS)


def _binary(chance: Random, name: str) -> RandomColumn:
    size = chance.randint(1, 30)
    kind = chance.choice([f"BINARY({size})", f"VARBINARY({size})", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"])
    index = f"`{name}`(10)" if kind.endswith("BLOB") else f"`{name}`"
    return RandomColumn(name, kind, lambda chance: _hex(_bytes(chance, size)), index)


def _members(chance: Random, name: str) -> RandomColumn:
    kind, most = chance.choice([("ENUM", 300), ("SET", 64)])
    charset = chance.choice(_CHARSETS)
    count = chance.choice([1, 2, 8, most])
    members = [chance.choice("aäж中") + str(number) for number in range(count)]
    if chance.random() < 0.3:
        members[chance.randrange(count)] = ""
    # All letters that the character set lacks would become the same '?'.
    members = [
        member if charset.startswith("utf") else member.encode("ascii", "replace").decode() for member in members
    ]
    text = ",".join(f"'{member}'" for member in members)
    numbers = (1 << count) - 1 if kind == "SET" else count

    def values(chance: Random) -> str:
        return str(chance.choice([0, 1, numbers, chance.randint(0, numbers)]))

    kind += f"({text}) CHARACTER SET {charset}"
    return RandomColumn(name, kind, values, f"`{name}`", in_json=charset not in _PAIRS)


def _document(chance: Random, name: str) -> RandomColumn:
    return RandomColumn(name, "JSON", lambda chance: f"JSON_EXTRACT(JSON_ARRAY({json_node(chance, 0)}),'$[0]')", "")


def json_node(chance: Random, depth: int) -> str:
    """A document's node as an SQL expression: plain JSON and members of SQL types, nested."""
    if depth < 4 and chance.random() < 0.5:
        nodes = [json_node(chance, depth + 1) for _ in range(chance.randint(0, 4))]
        if chance.random() < 0.5:
            return f"JSON_ARRAY({','.join(nodes)})"
        keys = [f"_utf8mb4 {_hex((_string(chance, 5) + str(place)).encode())}" for place in range(len(nodes))]
        return f"JSON_OBJECT({','.join(f'{key},{node}' for key, node in zip(keys, nodes, strict=True))})"
    number = chance.choice(
        [0, 1, 127, 128, 32767, 32768, 65536, 1 << 31, 1 << 32, (1 << 63) - 1, chance.getrandbits(63)]
    )
    return chance.choice([
        "CAST('null' AS JSON)", "CAST('true' AS JSON)", f"CAST({number} AS UNSIGNED)", f"CAST(-{number} AS SIGNED)",
        f"CAST('{number}' AS JSON)", "CAST(18446744073709551615 AS UNSIGNED)", f"{chance.gauss(0, 1e6)!r}e0",
        f"CAST({_point(number, chance.randint(0, 19))} AS DECIMAL(65,{chance.randint(0, 30)}))",
        f"CAST({number} AS SIGNED)", _hex(_bytes(chance, 9)),
        f"CONVERT(_utf8mb4 {_hex(_string(chance, 200).encode())} USING utf8mb4)", "DATE'2001-02-03'", "'2001-02-03'",
        f"TIME'-{chance.randrange(_HOURS)}:59:59.{chance.randrange(10**6):06d}'", "TIMESTAMP'0000-00-00 00:00:00'",
        f"TIMESTAMP'9999-12-31 23:59:59.{chance.randrange(10**6):06d}'",
    ])  # fmt: skip


def _geometry(chance: Random, name: str) -> RandomColumn:
    def values(chance: Random) -> str:
        x, y = chance.uniform(-80, 80), chance.uniform(-80, 80)
        shape = chance.choice([f"POINT({x} {y})", f"LINESTRING(0 0,{x} {y})", "GEOMETRYCOLLECTION EMPTY"])
        return f"ST_GeomFromText('{shape}', {chance.choice([0, 4326])})"

    return RandomColumn(name, "GEOMETRY", values, "")


def _vector(chance: Random, name: str) -> RandomColumn:
    size = chance.randint(1, 5)

    def values(chance: Random) -> str:
        return f"TO_VECTOR('{[round(chance.uniform(-9, 9), 3) for _ in range(size)]}')"

    return RandomColumn(name, f"VECTOR({size})", values, "", in_json=False)
