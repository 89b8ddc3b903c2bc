"""Reads MySQL's packed DECIMAL as text: four bytes contain nine digits, the top bit is the sign (MySQL source,
strings/decimal).
"""

import functools
from collections.abc import Callable
from struct import Struct
from typing import Any, cast

__all__ = ["decimal_reader"]

_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # number of bytes for 0 to 9 decimal digits
_FORMATS = {1: "B", 2: "H", 3: "BH", 4: "I"}
_COMPLEMENT = bytes(255 - byte for byte in range(256))


@functools.cache
def decimal_reader(precision: int, scale: int) -> tuple[int, Callable[[bytes], str]]:
    """Returns the width of DECIMAL(precision, scale) in bytes, and its reader, which returns text with ``scale``
    decimals.

    The reader is generated code: it unpacks all groups of digits with one call, and formats them with one call.
    """
    whole = precision - scale
    integral = [*([whole % 9] if whole % 9 else []), *[9] * (whole // 9)]
    fraction = [*[9] * (scale // 9), *([scale % 9] if scale % 9 else [])]
    sizes = [_DIGIT_BYTES[count] for count in integral + fraction]
    names = [f"g{index}" for index in range(len(sizes))]
    halves = [f"h{name},{name}" if size == 3 else name for name, size in zip(names, sizes, strict=True)]
    number = "0"
    for name in names[: len(integral)]:
        number = f"({number}) * 1000000000 + {name}" if number != "0" else name
    text = "%s%d" + ("." + "".join(f"%0{count}d" for count in fraction) if scale else "")
    values = ", ".join(["sign", number, *names[len(integral) :]])
    code = [
        "def convert(data):",
        " sign = ''",
        " if data[0] < 128:",
        "  data = data.translate(complement)",
        "  sign = '-'",
        f" {','.join(halves)}, = unpack(data)",
        *(f" {name} += h{name} << 16" for name, size in zip(names, sizes, strict=True) if size == 3),
        f" {names[0]} -= {0x80 << 8 * (sizes[0] - 1)}",
        f" return {text!r} % ({values})",
    ]
    packed = Struct(">" + "".join(_FORMATS[size] for size in sizes))
    constants: dict[str, Any] = {"unpack": packed.unpack, "complement": _COMPLEMENT}
    exec("\n".join(code), constants)
    return packed.size, cast(Callable[[bytes], str], constants["convert"])
