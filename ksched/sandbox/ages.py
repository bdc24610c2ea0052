"""Times and ages as kubectl prints them."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

UNKNOWN = "<unknown>"


def age(stamp: str | None, now: datetime) -> str:
    """How long ago `stamp` (RFC 3339) was, as kubectl's AGE column has it."""
    if not stamp:
        return UNKNOWN
    then = parse_time(stamp)
    return UNKNOWN if then is None else human_duration((now - then).total_seconds())


@lru_cache(maxsize=1 << 14)
def parse_time(stamp: str) -> datetime | None:
    """The time written in RFC 3339, or None if it is not one."""
    try:
        parsed = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)


def human_duration(seconds: float) -> str:
    """A duration in the one or two units that matter, as Kubernetes shortens it: 2m5s, 3h10m, 12d, 2y45d."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    years = days // 365
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if years < 8:
        return _two(years, "y", days % 365, "d")
    return f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
