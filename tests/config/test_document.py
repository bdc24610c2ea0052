"""YAML and JSON, as kube-scheduler's libraries read them."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.config.document import Number, Repeating, read_document
from ksched.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("yes", True, id="yes is true"),
        pytest.param("n", False, id="n is false"),
        pytest.param("'yes'", "yes", id="a quoted word is text"),
        pytest.param("!!str 5", "5", id="a tagged number is text"),
        pytest.param("~", None, id="a tilde is null"),
        pytest.param("010", 8, id="a leading zero is octal"),
        pytest.param("0o10", 8, id="so is 0o"),
        pytest.param("0x1F", 31, id="hexadecimal"),
        pytest.param("-0b11", -3, id="binary with a sign"),
        pytest.param("1_000", 1000, id="underscores are ignored"),
        pytest.param("1e2", 100, id="a float that is whole counts as an integer"),
        pytest.param("2.0", 2, id="so does one with decimals"),
        pytest.param("0.5", 0.5, id="a float"),
        pytest.param("1e22", 1e22, id="a huge float stays one"),
        pytest.param("99999999999999999999999", 1e23, id="an integer of more than 64 bits becomes a float"),
        pytest.param("1:30", "1:30", id="no sexagesimal numbers"),
        pytest.param("2020-01-01", "2020-01-01", id="no dates"),
        pytest.param("089", 89, id="a leading zero before an 8 is a float"),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    read = read_document(f"a: {text}\n").value["a"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("", None, id="an empty file is null"),
        pytest.param("---\n", None, id="so is an empty document"),
        pytest.param("a: 1\n---\na: 2\n", {"a": 1}, id="only the first document counts"),
        pytest.param("\ufeffa: 1\n", {"a": 1}, id="a byte order mark is skipped"),
        pytest.param("1: a\ntrue: b\nn: c\n", {"1": "a", "true": "b", "false": "c"}, id="keys are texts"),
        pytest.param("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}, id="an alias is the same again"),
        pytest.param(
            "a: &x {b: 1, d: 2}\nc: {<<: *x, e: 3}\n",
            {"a": {"b": 1, "d": 2}, "c": {"b": 1, "d": 2, "e": 3}},
            id="merge",
        ),
        pytest.param(
            "c: {<<: [{b: 1}, {b: 2, d: 3}]}\n", {"c": {"b": 1, "d": 3}}, id="of merged mappings the first wins"
        ),
        pytest.param('{"b": 1, "a": [null, true]}', {"b": 1, "a": [None, True]}, id="JSON"),
    ],
)
def test_documents(text: str, value: Any) -> None:
    assert read_document(text) == (value, [])


def test_keys_of_yaml_are_sorted_since_the_first_mistake_is_told() -> None:
    assert list(read_document("b: 1\na: 2\n").value) == ["a", "b"]
    assert list(read_document('{"b": 1, "a": 2}').value) == ["b", "a"]


def test_repeated_keys_of_yaml_are_one_complaint_with_all_lines() -> None:
    document = read_document("a: 1\na: 2\nb:\n  c: 1\n  c: 2\n")
    assert document.value == {"a": 2, "b": {"c": 2}}
    assert document.complaints == [
        'yaml: unmarshal errors:\n  line 2: key "a" already set in map\n  line 5: key "c" already set in map'
    ]


def test_repeated_keys_of_json_are_kept_with_the_object() -> None:
    value = read_document('{"a": 1, "a": 2, "b": 3}').value
    assert value == {"a": 2, "b": 3}
    assert isinstance(value, Repeating)
    assert value.repeated == ("a",)


def test_numbers_of_json_keep_how_they_were_written() -> None:
    value = read_document('{"a": 2.0}').value["a"]
    assert isinstance(value, Number)
    assert (float(value), value.text) == (2.0, "2.0")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [\n", "yaml: line 1: did not find expected node content", id="an open list"),
        pytest.param("a:\n\tb: 1\n", "yaml: line 2: found character that cannot start any token", id="a tab"),
        pytest.param("a: \x01\n", "yaml: control characters are not allowed", id="a control character"),
        pytest.param("a: &x [*x]\n", "yaml: line 1: an anchor contains itself", id="a list in itself"),
        pytest.param("? [a]\n: b\n", 'yaml: expected a text as the key of a mapping, got ["a"]', id="a list as a key"),
        pytest.param(
            "a: {<<: 5}\n",
            "yaml: line 1: map merge requires map or sequence of maps as the value",
            id="merging a number",
        ),
        pytest.param("a: 1e999\n", "yaml: 1e999 is out of range for a 64-bit float", id="a number that is too large"),
        pytest.param(
            '{"a": 1} x',
            "couldn't get version/kind; json parse error: invalid character 'x' after top-level value",
            id="JSON and more",
        ),
        pytest.param(
            '{"a":',
            "couldn't get version/kind; json parse error: unexpected end of JSON input",
            id="half of a JSON object",
        ),
        pytest.param(
            '{"a": NaN}', "couldn't get version/kind; json parse error: invalid character 'N'", id="NaN is not JSON"
        ),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_document(text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a":' + "[" * 100_000, id="JSON"),
        pytest.param("a: " + "[" * 900 + "]" * 900, id="YAML"),
    ],
)
def test_a_file_of_nothing_but_brackets_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="nested hundreds deep"):
        read_document(text)
