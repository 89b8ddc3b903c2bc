"""MySQL's packed DECIMAL: nine digits in four bytes, the sign in the top bit (MySQL source, strings/decimal)."""

from collections.abc import Callable

__all__ = ["decimal_reader"]

_DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)  # bytes for 0 to 9 decimal digits


def decimal_reader(precision: int, scale: int) -> tuple[int, Callable[[bytes], str]]:
    """Width in bytes and reader of DECIMAL(precision, scale), which gives text with ``scale`` digits at its end."""
    whole = precision - scale
    digits = [*([whole % 9] if whole % 9 else []), *[9] * (whole // 9)]
    fraction = [*[9] * (scale // 9), *([scale % 9] if scale % 9 else [])]
    width = sum(_DIGIT_BYTES[count] for count in digits + fraction)
    plan = [(count, _DIGIT_BYTES[count]) for count in digits + fraction]

    def convert(data: bytes) -> str:
        negative = not data[0] & 0x80
        number = int.from_bytes(data, "big") ^ (1 << (8 * width - 1))
        raw = (number ^ ((1 << (8 * width)) - 1) if negative else number).to_bytes(width, "big")
        texts, at = [], 0
        for count, size in plan:
            texts.append(f"{int.from_bytes(raw[at : at + size], 'big'):0{count}d}")
            at += size
        integral = "".join(texts[: len(digits)]).lstrip("0") or "0"
        text = integral + ("." + "".join(texts[len(digits) :]) if scale else "")
        return "-" + text if negative else text

    return width, convert
