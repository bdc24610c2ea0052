"""Integer arithmetic as Go has it, where its limits show in results: 64 bits that wrap around, division that truncates
towards zero."""

from __future__ import annotations

_HALF = 1 << 63
_WHOLE = 1 << 64


def wrapped(number: int) -> int:
    """`number` as int64 arithmetic leaves it."""
    return number if -_HALF <= number < _HALF else (number + _HALF) % _WHOLE - _HALF


def divided(number: int, by: int) -> int:
    """The quotient, truncated towards zero."""
    return number // by if (number >= 0) == (by > 0) else -(-number // by)
