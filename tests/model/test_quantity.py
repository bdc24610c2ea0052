"""Quantities: what can be read, what it amounts to, how it is spelled, and that the quick form agrees."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.errors import QuantityError
from ksched.model.quantity import (
    MAX_EXPONENT,
    NOT_PLAIN,
    PLAIN_MAX,
    Quantity,
    milli_of_nanos,
    millis,
    nanos,
    parse_quantity,
    read_quantity,
    units,
    units_of_nanos,
)

INT64_MAX = 2**63 - 1

SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "e2": Fraction(100),
    "E-2": Fraction(1, 100),
}


@pytest.mark.parametrize(
    ("text", "value", "milli", "spelled"),
    [
        pytest.param("1", 1, 1000, "1", id="a plain number"),
        pytest.param("1.5", 2, 1500, "1500m", id="a fraction is rounded up and spelled with a suffix"),
        pytest.param("0.0005", 1, 1, "500u", id="less than a thousandth still counts as one"),
        pytest.param("0.1n", 1, 1, "1n", id="less than a billionth is a billionth"),
        pytest.param("-1.5", -2, -1500, "-1500m", id="a negative fraction goes away from zero"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, "1536Mi", id="binary suffixes keep a whole number"),
        pytest.param("1.1Gi", 1181116007, 1181116006400, "1181116006400m", id="a broken binary number turns decimal"),
        pytest.param("0.5Ki", 512, 512000, "512", id="fewer than 1024 are written without a suffix"),
        pytest.param("12e6", 12_000_000, 12_000_000_000, "12e6", id="an exponent stays an exponent"),
        pytest.param("+2", 2, 2000, "+2", id="a spelling with the right digits is kept, sign and all"),
        pytest.param("007", 7, 7000, "007", id="leading zeros are kept with it"),
        pytest.param("1000", 1000, 1_000_000, "1k", id="a spelling with too many digits is not kept"),
        pytest.param("m", 0, 0, "0", id="a suffix alone is nothing"),
        pytest.param("+", 0, 0, "0", id="so is a sign alone"),
        pytest.param("1000E", 0, 0, "1", id="beyond int64 the value is nothing, and no suffix is left to write"),
        pytest.param("1024E", 0, 0, "1024E", id="beyond int64 the spelling may remain"),
        pytest.param("16Ei", INT64_MAX, -1000, "9223372036854775807", id="binary numbers stop at the largest int64"),
        pytest.param("9223372036854775807", INT64_MAX, -1000, "9223372036854775807", id="thousandths may overflow"),
    ],
)
def test_reading_and_spelling(text: str, value: int, milli: int, spelled: str) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value(), quantity.milli_value(), str(quantity)) == (value, milli, spelled)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "must match the regular expression", id="nothing at all"),
        pytest.param("half", "must match the regular expression", id="a word"),
        pytest.param("1 Gi", "must match the regular expression", id="a blank inside"),
        pytest.param(" 1", "must match the regular expression", id="a blank before"),
        pytest.param("1\n", "must match the regular expression", id="a line feed at the end"),
        pytest.param("1.2.3", "must match the regular expression", id="two points"),
        pytest.param("١", "must match the regular expression", id="digits of another script"),
        pytest.param("1K", "unable to parse quantity's suffix, expected one of n, u, m, k, M", id="kilo with a big K"),
        pytest.param("1e", "unable to parse quantity's suffix", id="an exponent without a number"),
        pytest.param("-+1", "unable to parse quantity's suffix", id="two signs"),
        pytest.param(f"1e{MAX_EXPONENT + 1}", "at most 1000, got '1e1001'", id="an exponent nobody needs"),
        pytest.param("1e-99999999999999999999", "at most 1000", id="a small exponent nobody needs"),
        pytest.param("9" * 5000, "a quantity of 5000 characters, expected at most 1000: '999", id="a very long number"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, said: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


def test_the_largest_exponents_are_read_at_once() -> None:
    huge, tiny = parse_quantity(f"1e{MAX_EXPONENT}"), parse_quantity(f"1e-{MAX_EXPONENT}")
    assert (huge.value(), str(tiny)) == (0, "1e-9")
    assert huge + tiny > huge
    assert len(str(huge + tiny)) == MAX_EXPONENT + len("0000000001e-9")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        pytest.param("2", 2, id="text"),
        pytest.param(" 2 ", 2, id="text with blanks around it, which Kubernetes trims in JSON"),
        pytest.param(2, 2, id="a whole JSON number"),
        pytest.param(1.5, 2, id="a broken JSON number"),
        pytest.param(1e22, 0, id="a JSON number beyond int64"),
        pytest.param(1e-7, 1, id="a tiny JSON number"),
    ],
)
def test_what_an_object_may_hold(written: str | int | float, value: int) -> None:
    assert read_quantity(written).value() == value
    assert units(written) == value


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("\t2", "must match the regular expression", id="a tab, which JSON must escape, is not trimmed"),
        pytest.param(float("nan"), "must match the regular expression", id="not a number"),
        pytest.param(
            10**5000, "expected a quantity below 10^1000, got a number of 16610 bits", id="a monstrous number"
        ),
    ],
)
def test_what_an_object_may_not_hold(written: str | int | float, said: str) -> None:
    for read in (read_quantity, nanos, units, millis):
        with pytest.raises(QuantityError) as caught:
            read(written)
        assert said in str(caught.value)


def test_a_truth_value_is_no_number() -> None:
    with pytest.raises(QuantityError, match="expected a quantity, text or number, got True"):
        read_quantity(True)


@pytest.mark.parametrize(
    ("left", "right", "total", "difference"),
    [
        pytest.param("1", "500m", "1500m", "500m", id="the first one's format is kept"),
        pytest.param("0", "1Gi", "1Gi", "-1Gi", id="nothing takes the other one's format"),
        pytest.param("1Gi", "1", "1073741825", "1073741823", id="binary and whole"),
        pytest.param("9223372036854775807", "1", "9223372036854775808", "9223372036854775806", id="beyond int64"),
    ],
)
def test_sums_and_differences(left: str, right: str, total: str, difference: str) -> None:
    assert str(parse_quantity(left) + parse_quantity(right)) == total
    assert str(parse_quantity(left) - parse_quantity(right)) == difference


def test_quantities_are_equal_and_ordered_by_amount() -> None:
    assert parse_quantity("1000m") == parse_quantity("1") == parse_quantity("1e0")
    assert hash(parse_quantity("1000m")) == hash(parse_quantity("1")) == hash(parse_quantity("1e0"))
    assert parse_quantity("1") != "1"
    assert parse_quantity("999m") < parse_quantity("1") <= parse_quantity("1000m") < parse_quantity("1Ki")
    assert parse_quantity("1Ki") > 1023
    assert parse_quantity("1Ki") >= 1024


def test_an_int64_is_given_only_without_calculating() -> None:
    assert parse_quantity("5k").as_int64() == 5000
    assert parse_quantity("5000m").as_int64() is None
    assert parse_quantity("1.5Ki").as_int64() is None
    assert parse_quantity("10E").as_int64() is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("-1n", id="negative"),
        pytest.param("10P", id="too large"),
        pytest.param("1e900", id="far too large"),
    ],
)
def test_nanos_are_not_plain_when(text: str) -> None:
    assert nanos(text) == NOT_PLAIN
    assert nanos(text) + nanos("1") > PLAIN_MAX


@pytest.mark.parametrize("text", ["0", "-0", "0e900", "0e-900", "0.00000000000000000000", "0Ei"])
def test_nothing_is_plain_however_it_is_spelled(text: str) -> None:
    assert nanos(text) == 0
    assert parse_quantity(text).is_zero


def test_numbers_are_forgotten_when_there_are_too_many_spellings() -> None:
    assert [millis(f"{number}m") for number in range(70_000)] == list(range(70_000))
    assert len(millis.__self__) < 70_000  # type: ignore[attr-defined]


@st.composite
def ordinary_quantities(draw: st.DrawFn) -> tuple[str, Fraction]:
    """Text and amount of something that a container may ask for."""
    whole = draw(st.integers(0, 10**6))
    fraction = draw(st.text("0123456789", max_size=4))
    suffix = draw(st.sampled_from(sorted(SUFFIXES)))
    amount = (Fraction(whole) + Fraction(int(fraction or "0"), 10 ** len(fraction))) * SUFFIXES[suffix]
    nano = Fraction(-(-amount * 10**9 // 1), 10**9)
    return f"{whole}.{fraction}{suffix}" if fraction else f"{whole}{suffix}", nano


@given(ordinary_quantities())
def test_what_is_read_is_the_amount_rounded_up_to_billionths(written: tuple[str, Fraction]) -> None:
    text, amount = written
    quantity = parse_quantity(text)
    assert Fraction(quantity.unscaled) * Fraction(10) ** quantity.exponent == amount
    assert quantity.value() == -(-amount // 1)
    assert quantity.milli_value() == -(-amount * 1000 // 1)
    assert parse_quantity(quantity.canonical()) == quantity


@given(st.lists(ordinary_quantities(), min_size=1, max_size=6))
def test_sums_of_nanos_and_of_quantities_agree(written: list[tuple[str, Fraction]]) -> None:
    total = sum((parse_quantity(text) for text, _ in written), Quantity(0, 0))
    exact = sum(nanos(text) for text, _ in written)
    assert units_of_nanos(exact) == total.value()
    assert milli_of_nanos(exact) == total.milli_value()
    assert exact == sum(amount for _, amount in written) * 10**9


@given(ordinary_quantities(), ordinary_quantities())
def test_order_is_the_order_of_amounts(left: tuple[str, Fraction], right: tuple[str, Fraction]) -> None:
    ordered = (left[1] > right[1]) - (left[1] < right[1])
    assert parse_quantity(left[0]).compare(parse_quantity(right[0])) == ordered
    assert (parse_quantity(left[0]) - parse_quantity(right[0])).sign == ordered


@given(st.text("0123456789.eEinumkKMGTP+- ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        quantity = parse_quantity(text)
    except QuantityError:
        return
    assert -INT64_MAX - 1 <= quantity.value() <= INT64_MAX
    assert -INT64_MAX - 1 <= quantity.milli_value() <= INT64_MAX
    assert parse_quantity(str(quantity)).format in ("DecimalSI", "BinarySI", "DecimalExponent")
