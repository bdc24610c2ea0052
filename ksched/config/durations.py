"""Durations in Go's notation ("1m30s"), which is how Kubernetes' configuration writes them."""

from __future__ import annotations

import re
from fractions import Fraction

from ksched.errors import ConfigurationError

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"(\d*)(\.(\d*))?([^\d.]*)")


def seconds(duration: str) -> float:
    """The length of a duration; ConfigurationError, in Go's words, if it is not one."""
    return nanoseconds(duration) / 10**9


def nanoseconds(duration: str) -> int:
    """The length of a duration in nanoseconds, rounded towards zero."""
    sign, rest = (-1, duration[1:]) if duration.startswith("-") else (1, duration.removeprefix("+"))
    if rest == "0":
        return 0
    if not rest:
        raise ConfigurationError(f'time: invalid duration "{duration}"')
    total = 0
    while rest:
        match = _PART.match(rest)
        if match is None or not (match[1] or match[3]):
            raise ConfigurationError(f'time: invalid duration "{duration}"')
        if not match[4]:
            raise ConfigurationError(f'time: missing unit in duration "{duration}"')
        if match[4] not in _NANOSECONDS:
            raise ConfigurationError(f'time: unknown unit "{match[4]}" in duration "{duration}"')
        total += int(Fraction(f"{match[1] or 0}.{match[3] or 0}") * _NANOSECONDS[match[4]])
        if total > 2**63 - 1 + (sign < 0):
            raise ConfigurationError(f'time: invalid duration "{duration}"')
        rest = rest[match.end() :]
    return sign * total


def canonical(duration: str) -> str:
    """The duration as Go writes it: "90s" is "1m30s"."""
    total = nanoseconds(duration)
    if total == 0:
        return "0s"
    sign, left = ("-", -total) if total < 0 else ("", total)
    for unit in ("ns", "µs", "ms"):
        if left < _NANOSECONDS[unit] * 1000:
            return f"{sign}{_decimal(left, _NANOSECONDS[unit])}{unit}"
    minutes, left = divmod(left, _NANOSECONDS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(left, _NANOSECONDS['s'])}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(amount: int, unit: int) -> str:
    """`amount` in units, with as many decimals as it has."""
    whole, part = divmod(amount, unit)
    digits = str(unit + part)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)
