"""The SELECT of a chunk, and the function that makes the rows that it answers to JSON text, generated for a table.

Byte for byte this is the text that module ``decode.row_codegen`` makes of the same rows in the binlog. A row is a
packet: for each column its length and its bytes (MySQL source documentation, "Text Resultset Row").
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cdc.producer.table_rows.column_texts import ColumnText, column_text, constants
from cdc.producer.table_rows.definition import TableDefinition, identifier
from cdc.sql.key_range import keys_condition, range_condition

__all__ = ["ChunkRows"]

Rows = Callable[[bytes, str, int, int, list[str]], int]
Row = Callable[[bytes, str], str]
_PACKET = [
    "def rows(d, t, p, end, out):",
    " add = out.append",
    " while end - p > 4:",
    "  n = d[p] | d[p+1] << 8 | d[p+2] << 16",
    "  stop = p + 4 + n",
    "  k = d[p+4]",
    # Not complete, continued in another packet, an error, or the end.
    "  if stop > end or n == 0xFFFFFF or k == 255 or (k == 254 and n < 9): break",
    "  p += 4",
]
_ROW_ENDS = "if p != stop: raise ValueError('a row ends %d bytes after its packet' % (p - stop))"


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """How a table's rows are read.

    ``rows(data, the same as latin1 text, offset, end, out)`` appends the rows of complete packets to ``out`` and
    returns the offset of the first packet that is none; ``row(payload, the same as text)`` is that of one row of 16 MiB
    and more. They raise ValueError and LookupError where a row can't be read exactly.
    """

    definition: TableDefinition
    selected: str
    rows: Rows
    row: Row

    @classmethod
    def of(cls, definition: TableDefinition) -> "ChunkRows":
        """Generate the code for a table that has no refusal."""
        known = constants()
        columns = [
            column_text(column, f"t.{identifier(column.name)}", f"x{index}", known)
            for index, column in enumerate(definition.columns)
        ]
        nullable = [column.nullable for column in definition.columns]
        lines, text = _row(columns, nullable)
        source = [*_PACKET, *(f"  {line}" for line in (*lines, _ROW_ENDS)), f"  add(f'{text}')", " return p"]
        source += ["def row(d, t):", " p, stop = 0, len(d)", *(f" {line}" for line in (*lines, _ROW_ENDS))]
        source.append(f" return f'{text}'")
        exec("\n".join(source), known)
        selected = ", ".join(expression for column in columns for expression in column.selected)
        return cls(definition, selected, known.pop("rows"), known.pop("row"))

    def whole_statement(self) -> str:
        """The SELECT of all rows, in any order."""
        table = self.definition
        return f"SELECT {self.selected} FROM {identifier(table.database)}.{identifier(table.name)} AS t"

    def statement(self, after: Sequence[str] | None, rows: int) -> str:
        """The SELECT of the ``rows`` rows behind ``after``, a literal for each column of the key."""
        return f"{self._where(range_condition(self._key, after, None))} ORDER BY {', '.join(self._key)} LIMIT {rows}"

    def of_keys(self, keys: Iterable[Sequence[str]]) -> str:
        """The SELECT of the rows with one of ``keys``, of which each has a literal for each column of the key."""
        return self._where(keys_condition(self._key, keys))

    @property
    def _key(self) -> list[str]:
        return [f"t.{identifier(name)}" for name in self.definition.key]

    def _where(self, condition: str) -> str:
        table = self.definition
        return (
            f"SELECT {self.selected} FROM {identifier(table.database)}.{identifier(table.name)} AS t "
            f"FORCE INDEX ({identifier(table.key_index)}) WHERE {condition}"
        )


def _row(columns: Sequence[ColumnText], nullable: Sequence[bool]) -> tuple[list[str], str]:
    """The lines that read a row's columns, and the source of the f-string of its JSON text."""
    lines: list[str] = []
    texts = []
    for index, (column, may_be_null) in enumerate(zip(columns, nullable, strict=True)):
        x = f"x{index}"
        text = column.text.replace("X", x)
        convert = [line.replace("X", x) for line in column.lines]
        if len(column.selected) > 1:
            lines += _several(x, len(column.selected))
            lines.append(f"if {x}[0] is None: v{index} = '\"Null\"'")
        elif may_be_null:
            lines.append(f"if d[p] == 251: v{index} = '\"Null\"'; p += 1")
        if len(column.selected) > 1 or may_be_null:
            read = convert if len(column.selected) > 1 else [*_part(x, column.source), *convert]
            lines += ["else:", *(f" {line}" for line in read), f" v{index} = f'{text}'"]
            texts.append(f"{{v{index}}}")
        else:
            lines += [*_part(x, column.source), *convert]
            texts.append(text)
    return lines, '{{"cols":[' + ",".join(texts) + "]}}"


def _part(x: str, source: str) -> Iterator[str]:
    """The lines that read one column that is not NULL."""
    yield "l = d[p]"
    yield "if l < 251: p += 1"
    # 251 would be NULL.
    yield "elif l == 252: l = d[p+1] | d[p+2] << 8; p += 3"
    yield "elif l == 253: l = d[p+1] | d[p+2] << 8 | d[p+3] << 16; p += 4"
    yield "elif l == 254: l = int.from_bytes(d[p+1:p+9], 'little'); p += 9"
    yield "else: raise ValueError('a column that can not be NULL is, or its length is broken')"
    yield f"{x} = {source}[p:p+l]; p += l"


def _several(x: str, count: int) -> Iterator[str]:
    """The lines that read columns of one value as a list, with None for NULL."""
    yield f"{x} = []"
    yield f"for _ in range({count}):"
    yield f" if d[p] == 251: {x}.append(None); p += 1"
    yield " else:"
    yield from (f"  {line}" for line in _part("part", "d"))
    yield f"  {x}.append(part)"
