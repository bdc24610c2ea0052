"""Resource quantities ("250m", "1.5Gi", "1e3"), exact as Kubernetes has them.

Two forms of one number. `Quantity` behaves like `resource.Quantity` to the last digit, including what that gives for
numbers beyond 64 bits, its spelling and its formats; use it where text goes out or where such numbers can matter.
`nanos` is the form to calculate with: an exact integer of billionths, looked up in tens of nanoseconds. Sums and
maxima of `nanos` are rounded once, at the end, by `milli_of_nanos` and `units_of_nanos`. Both are defined only for
ordinary quantities; everything else reads as `NOT_PLAIN`, larger than every ordinary sum, so that a caller sees with
one comparison that it must start again with `Quantity`, as `model.requests` does.

Kubernetes keeps a quantity as an int64 and a power of ten where it can (here: the compact form) and as a decimal of
any size otherwise. Within 64 bits they agree; they differ in how overflow and negative fractions come out, therefore
`Quantity` keeps track of which of the two it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ksched.errors import QuantityError
from ksched.model.int64 import wrapped
from ksched.model.objects import QuantityText

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

NANO: Final = -9
MILLI: Final = -3

FORMAT_WRONG: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX_WRONG: Final = "unable to parse quantity's suffix"

MAX_EXPONENT: Final = 1000
"""Larger exponents are refused.

Kubernetes takes them and, for numbers in the millions, does not come to an end; nobody has a cluster of 10^1000 of
anything.
"""

MAX_LENGTH: Final = 1000
"""The longest text that is read, for the same reason."""

_INT64_MAX: Final = 2**63 - 1
_COMPACT_DIGITS: Final = 18
_SHOWN_LENGTH: Final = 60

# Kubernetes trims the JSON text before it reads escapes, so blanks that JSON must escape (tab, newline) stay.
_BLANKS: Final = (
    " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)

_PARTS: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")

_DECIMAL_SUFFIXES: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_SUFFIXES: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX_OF: Final = {exponent: suffix for suffix, exponent in _DECIMAL_SUFFIXES.items()}
_BINARY_SUFFIX_OF: Final = {exponent: suffix for suffix, exponent in _BINARY_SUFFIXES.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Quantity:
    """`unscaled` times ten to the power of `exponent`; immutable, ordered and equal by amount alone.

    `compact` tells which of Kubernetes' two forms holds it, `text` how it was spelled, where Kubernetes remembers that.
    """

    unscaled: int
    exponent: int
    format: Format = "DecimalSI"
    compact: bool = True
    text: str = ""

    def value(self) -> int:
        """The amount in whole units, rounded up; beyond int64 whatever Kubernetes has."""
        return self.scaled_value(0)

    def milli_value(self) -> int:
        """The amount in thousandths, rounded up; beyond int64 whatever Kubernetes has."""
        return self.scaled_value(MILLI)

    def scaled_value(self, exponent: int) -> int:
        """The amount in units of ten to the power of `exponent`, rounded up."""
        if self.compact:
            return _scale_compact(self.unscaled, self.exponent - exponent)
        return _scale_decimal(self.unscaled, self.exponent - exponent)

    def as_int64(self) -> int | None:
        """The amount if Kubernetes has it as an int64 without calculating, otherwise None."""
        if not self.compact or self.exponent < 0:
            return None
        exact = self.unscaled * _power_of_ten(self.exponent)
        return exact if -_INT64_MAX - 1 <= exact <= _INT64_MAX else None

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.unscaled > 0) - (self.unscaled < 0)

    @property
    def is_zero(self) -> bool:
        """Whether the amount is nothing."""
        return self.unscaled == 0

    def __str__(self) -> str:
        return self.text or self.canonical()

    def canonical(self) -> str:
        """The spelling that Kubernetes writes: no fraction, the largest suffix that loses nothing."""
        if self.unscaled == 0:
            return "0"
        if self.format == "BinarySI" and not -1024 < self < 1024 and (whole := _whole(self)) is not None:
            number, times = _without_factors(whole, 1024)
            return f"{number}{_BINARY_SUFFIX_OF.get(10 * times, '')}"
        number, times = _without_factors(self.unscaled, 10)
        exponent = self.exponent + times
        number *= _power_of_ten(exponent % 3)
        exponent -= exponent % 3
        if self.format == "DecimalExponent":
            return f"{number}e{exponent}" if exponent else str(number)
        # A power of ten without a suffix of its own is left out, as Kubernetes does: "1000E" is written "1".
        return f"{number}{_DECIMAL_SUFFIX_OF.get(exponent, '')}"

    def compare(self, other: Quantity) -> int:
        """-1, 0 or 1 as the amount is less than, equal to or more than the other."""
        mine, others, _ = _aligned(self, other)
        return (mine > others) - (mine < others)

    def __add__(self, other: Quantity) -> Quantity:
        return _sum(self, other, 1)

    def __sub__(self, other: Quantity) -> Quantity:
        return _sum(self, other, -1)

    def __lt__(self, other: Quantity | int) -> bool:
        return self.compare(_as_quantity(other)) < 0

    def __le__(self, other: Quantity | int) -> bool:
        return self.compare(_as_quantity(other)) <= 0

    def __gt__(self, other: Quantity | int) -> bool:
        return self.compare(_as_quantity(other)) > 0

    def __ge__(self, other: Quantity | int) -> bool:
        return self.compare(_as_quantity(other)) >= 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __hash__(self) -> int:
        number, times = _without_factors(self.unscaled, 10)
        return hash((number, self.exponent + times if number else 0))

    def as_decimal(self) -> Quantity:
        """The same amount in the form without a limit."""
        return self if not self.compact else Quantity(self.unscaled, self.exponent, self.format, False, self.text)


def parse_quantity(text: str) -> Quantity:
    """Read `text` as Kubernetes' ParseQuantity does; QuantityError says what was wrong with it."""
    if len(text) > MAX_LENGTH:
        raise QuantityError(f"a quantity of {len(text)} characters, expected at most {MAX_LENGTH}: {_shown(text)}")
    parts = _PARTS.fullmatch(text) if text else None
    if parts is None:
        raise QuantityError(f"{FORMAT_WRONG}, got {_shown(text)}")
    sign, whole, fraction, suffix = (
        parts.group(1),
        parts.group(2).lstrip("0") or "0",
        parts.group(3) or "",
        parts.group(4),
    )
    digits = whole + fraction
    negative = sign == "-"
    if (binary := _BINARY_SUFFIXES.get(suffix)) is not None:
        # Up to this many digits Kubernetes trusts the product to fit an int64.
        if not fraction and len(whole) <= 14 - binary * 3 // 10:
            unscaled = int(digits)
            spelled = text if unscaled & 7 else ""
            return Quantity(_signed(unscaled << binary, negative), 0, "BinarySI", True, spelled)
        return _binary_decimal(int(digits) << binary, -len(fraction), negative)
    exponent, format = _decimal_suffix(suffix, text)
    exponent -= len(fraction)
    if len(digits) <= _COMPACT_DIGITS and exponent >= NANO:
        is_canonical = exponent % 3 == 0 and not digits.endswith("000") and digits[0] != "0"
        spelled = text if is_canonical or text == "0" else ""
        return Quantity(_signed(int(digits), negative), exponent, format, True, spelled)
    unscaled, exponent = _round_up_to_nano(int(digits), exponent)
    return Quantity(_signed(unscaled, negative), exponent, format, False)


def read_quantity(written: QuantityText) -> Quantity:
    """A quantity as it stands in an object: text, around which blanks are allowed, or a JSON number."""
    if isinstance(written, str):
        return parse_quantity(written.strip(_BLANKS))
    if isinstance(written, bool) or not isinstance(written, int | float):
        raise QuantityError(f"expected a quantity, text or number, got {_shown(written)}")
    if isinstance(written, int) and abs(written) >= 10**MAX_EXPONENT:
        raise QuantityError(f"expected a quantity below 10^{MAX_EXPONENT}, got a number of {written.bit_length()} bits")
    return parse_quantity(repr(written))


PLAIN_MAX: Final = _INT64_MAX // 1000 * 10**9
"""The largest sum of `nanos` that rounds to what Kubernetes has, in thousandths as in units: some 9.2 million billion
units.
"""

NOT_PLAIN: Final = 1 << 200
"""What `nanos` says of a negative or very large quantity. Every sum or maximum with it is above `PLAIN_MAX`."""

_INTERNED_MAX: Final = 1 << 16


class _Interned(dict[QuantityText, int]):
    """Numbers by the text that they were read from.

    A cluster has few spellings; should something make up many, they are forgotten all at once.
    """

    def __init__(self, read: Callable[[Quantity], int]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, written: QuantityText) -> int:
        number = self._read(read_quantity(written))
        if len(self) >= _INTERNED_MAX:
            self.clear()
        self[written] = number
        return number


def _nanos(quantity: Quantity) -> int:
    if quantity.is_zero:
        return 0
    if quantity.sign < 0 or quantity.exponent > _COMPACT_DIGITS:
        return NOT_PLAIN
    # Anything but nothing was rounded up to billionths when it was read, so the power is a whole number.
    exact = quantity.unscaled * _power_of_ten(quantity.exponent - NANO)
    return exact if exact <= PLAIN_MAX else NOT_PLAIN


# These are bound methods of dict subclasses and no functions, because a hit then costs one look-up and no Python
# frame (30 instead of 80 ns).

nanos: Callable[[QuantityText], int] = _Interned(_nanos).__getitem__
"""A quantity in billionths, exact; `NOT_PLAIN` if it is negative or above `PLAIN_MAX`. Raises QuantityError."""

units: Callable[[QuantityText], int] = _Interned(Quantity.value).__getitem__
"""`Quantity.value` of what is written in an object: bytes, pieces. Raises QuantityError."""

millis: Callable[[QuantityText], int] = _Interned(Quantity.milli_value).__getitem__
"""`Quantity.milli_value` of what is written in an object: thousandths of a CPU. Raises QuantityError."""


def milli_of_nanos(nanos: int) -> int:
    """Billionths in thousandths, rounded up. For sums up to `PLAIN_MAX`."""
    return -(-nanos // 1_000_000)


def units_of_nanos(nanos: int) -> int:
    """Billionths in whole units, rounded up. For sums up to `PLAIN_MAX`."""
    return -(-nanos // 1_000_000_000)


def _decimal_suffix(suffix: str, text: str) -> tuple[int, Format]:
    if (exponent := _DECIMAL_SUFFIXES.get(suffix)) is not None:
        return exponent, "DecimalSI"
    written = _EXPONENT.fullmatch(suffix)
    if written is None:
        known = ", ".join(name for name in (*_DECIMAL_SUFFIXES, *_BINARY_SUFFIXES) if name)
        raise QuantityError(f"{SUFFIX_WRONG}, expected one of {known}, an exponent or none, got {_shown(text)}")
    exponent = int(written.group(1))
    if abs(exponent) > MAX_EXPONENT:
        raise QuantityError(f"{SUFFIX_WRONG}, expected an exponent of at most {MAX_EXPONENT}, got {_shown(text)}")
    return exponent, "DecimalExponent"


def _binary_decimal(unscaled: int, exponent: int, negative: bool) -> Quantity:
    unscaled, exponent = _round_up_to_nano(unscaled, exponent)
    format: Format = "BinarySI"
    if unscaled > _INT64_MAX * _power_of_ten(-exponent):
        unscaled, exponent = _INT64_MAX, 0
    elif 0 < unscaled < _power_of_ten(-exponent):
        format = "DecimalSI"
    return Quantity(_signed(unscaled, negative), exponent, format, False)


def _round_up_to_nano(unscaled: int, exponent: int) -> tuple[int, int]:
    """`unscaled` in billionths, where anything is at least one. Nothing keeps its exponent."""
    if unscaled == 0:
        return 0, exponent
    if exponent >= NANO:
        return unscaled * _power_of_ten(exponent - NANO), NANO
    return -(-unscaled // _power_of_ten(NANO - exponent)), NANO


def _sum(left: Quantity, right: Quantity, sign: Literal[1, -1]) -> Quantity:
    format = right.format if left.unscaled == 0 else left.format
    if left.compact and right.compact:
        # Nothing leaves the other as it is, its exponent included.
        if right.unscaled == 0:
            return Quantity(left.unscaled, left.exponent, format)
        if left.unscaled == 0:
            return Quantity(sign * right.unscaled, right.exponent, format)
    mine, others, exponent = _aligned(left, right)
    compact = left.compact and right.compact and _fits(mine) and _fits(others) and _fits(mine + sign * others)
    return Quantity(mine + sign * others, exponent, format, compact)


def _aligned(left: Quantity, right: Quantity) -> tuple[int, int, int]:
    exponent = min(left.exponent, right.exponent)
    return (
        left.unscaled * _power_of_ten(left.exponent - exponent),
        right.unscaled * _power_of_ten(right.exponent - exponent),
        exponent,
    )


def _whole(quantity: Quantity) -> int | None:
    """The amount as a whole number, None if it has a fraction."""
    if quantity.exponent >= 0:
        return quantity.unscaled * _power_of_ten(quantity.exponent)
    whole, fraction = divmod(quantity.unscaled, _power_of_ten(-quantity.exponent))
    return None if fraction else whole


def _scale_compact(unscaled: int, exponent: int) -> int:
    """`unscaled` times ten to the power of `exponent`, away from zero, as Kubernetes' int64 arithmetic has it."""
    if exponent < 0:
        magnitude = -(-abs(unscaled) // _power_of_ten(-exponent))
        return -magnitude if unscaled < 0 else magnitude
    exact = unscaled * _power_of_ten(exponent)
    if _fits(exact):
        return exact
    # Kubernetes multiplies by these powers at once, without looking whether it went well, and by others digit by
    # digit until it overflows.
    return wrapped(exact) if exponent in (1, 2, 3, 6, 9) else 0


def _scale_decimal(unscaled: int, exponent: int) -> int:
    """The same in Kubernetes' arithmetic on decimals.

    A negative number with a fraction is rounded up or to one more, depending on its size.
    """
    if exponent >= 0:
        # Powers that a conversion from float64 to int64 cannot give come out as the smallest int64.
        power = _power_of_ten(exponent) if exponent <= _COMPACT_DIGITS else -_INT64_MAX - 1
        return wrapped(wrapped(unscaled) * power)
    divisor = _power_of_ten(-exponent)
    if unscaled < _INT64_MAX and -exponent <= _COMPACT_DIGITS:
        dividend = wrapped(unscaled)
        truncated = abs(dividend) // divisor * (-1 if dividend < 0 else 1)
        return truncated + (dividend % divisor != 0)
    floor, rest = divmod(unscaled, divisor)
    return wrapped(wrapped(floor) + (rest != 0))


def _power_of_ten(exponent: int) -> int:
    """Ten to the power of `exponent`, which is not negative (for the type checker, a power may be a fraction)."""
    power: int = 10**exponent
    return power


def _without_factors(number: int, factor: int) -> tuple[int, int]:
    times = 0
    while number and number % factor == 0:
        number //= factor
        times += 1
    return number, times


def _as_quantity(other: Quantity | int) -> Quantity:
    return other if isinstance(other, Quantity) else Quantity(other, 0)


def _signed(magnitude: int, negative: bool) -> int:
    return -magnitude if negative else magnitude


def _fits(number: int) -> bool:
    return -_INT64_MAX - 1 <= number <= _INT64_MAX


def _shown(written: object) -> str:
    shown = repr(written)
    return shown if len(shown) <= _SHOWN_LENGTH else shown[:_SHOWN_LENGTH] + "..."
