"""Object templates: Go's notation as scheduler_perf's files use it, and what is refused."""

from __future__ import annotations

import pytest

from benchmarks.errors import WorkloadError
from benchmarks.scheduler_perf.objects import Bodies, typed
from benchmarks.scheduler_perf.templates import ObjectTemplate

POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n"


def rendered(action: str, index: int = 7, count: int = 30) -> str:
    name = ObjectTemplate(POD.format(name=action), "a template").object(index, count)["metadata"]["name"]
    return str(name)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param("a-{{.Index}}", "a-7", id="a field"),
        pytest.param("a-{{ .Count }}", "a-30", id="blanks inside of the brackets do not matter"),
        pytest.param("a-{{Mod .Index 4}}", "a-3", id="Mod is the remainder"),
        pytest.param("a-{{Mod -7 4}}", "a--3", id="the remainder has the dividend's sign, as in Go"),
        pytest.param("a-{{DivideInt .Index 2}}", "a-3", id="DivideInt cuts the fraction off"),
        pytest.param("a-{{DivideInt -7 2}}", "a--3", id="towards zero"),
        pytest.param("a-{{AddInt .Index 1 2}}", "a-10", id="AddInt takes any number of operands"),
        pytest.param("a-{{MultiplyInt .Index 2 3}}", "a-42", id="so does MultiplyInt"),
        pytest.param("a-{{SubtractInt .Count .Index}}", "a-23", id="SubtractInt"),
        pytest.param("a-{{DivideFloat .Index 2}}", "a-3.5", id="floats keep their fraction"),
        pytest.param("a-{{MultiplyFloat .Index 2}}", "a-14", id="a whole float is written without one"),
        pytest.param("a-{{AddFloat .Index 0.25}}", "a-7.25", id="AddFloat"),
        pytest.param("a-{{SubtractFloat .Index 0.5}}", "a-6.5", id="SubtractFloat"),
        pytest.param("a-{{AddInt 1 (Mod .Index 4)}}", "a-4", id="brackets nest"),
        pytest.param("a-{{.Index | AddInt 1}}", "a-8", id="a pipe adds the last operand"),
        pytest.param("a-{{/* nothing */}}b", "a-b", id="a comment is nothing"),
        pytest.param("a-{{- .Index -}} b", "a-7b", id="dashes eat the blanks beside them"),
        pytest.param('a-{{AddInt "1" 2}}', "a-3", id="a text that is a number is one"),
    ],
)
def test_an_action_is_carried_out(action: str, expected: str) -> None:
    assert rendered(action) == expected


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        pytest.param("{{.Other}}", "there is no field .Other", id="an unknown field"),
        pytest.param("{{Square .Index}}", "function 'Square' not defined", id="an unknown function"),
        pytest.param("{{if .Index}}x{{end}}", "control structures are not supported", id="a condition"),
        pytest.param("{{AddInt 1 (Mod .Index 4}}", r"expected \)", id="an open bracket"),
        pytest.param("{{DivideInt .Index 0}}", "division by zero", id="a division by zero"),
        pytest.param("{{Mod .Index 0}}", "division by zero", id="a remainder by zero"),
        pytest.param("{{Mod .Index}}", "Mod", id="a missing operand"),
        pytest.param("{{.Index", "an action is not closed", id="an action without an end"),
        pytest.param("{{.Index .Count}}", "unexpected", id="something after the value"),
        pytest.param("{{.Index | }}", "expected a function after |", id="a pipe into nothing"),
        pytest.param('{{AddInt "x" 1}}', "could not convert", id="a text that is no number"),
    ],
)
def test_what_is_not_understood_is_refused(action: str, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        rendered(action)


def test_numbers_are_numbers_where_the_file_writes_them_bare() -> None:
    template = ObjectTemplate(POD.format(name="a") + "spec:\n  priority: {{.Index}}\n", "a template")
    assert template.object(3, 10)["spec"]["priority"] == 3


def test_a_file_without_actions_is_encoded_once() -> None:
    bodies = Bodies(ObjectTemplate(POD.format(name="a"), "a template"), 5)
    assert bodies[0] is bodies[4]


def test_every_object_is_the_callers_own() -> None:
    template = ObjectTemplate(POD.format(name="a"), "a template")
    template.object(0, 1)["metadata"]["name"] = "b"
    assert template.object(0, 1)["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("- a\n", "must be one object", id="a list"),
        pytest.param("kind: Pod\n", "must be one object with apiVersion and kind", id="an object without a version"),
        pytest.param("a: [", "not YAML", id="no YAML"),
    ],
)
def test_a_file_that_is_no_object_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        ObjectTemplate(text, "a template").object(0, 1)


def test_fields_with_a_capital_are_put_right_but_not_the_keys_of_maps() -> None:
    found = typed(
        {
            "Metadata": {"labels": {"App": "x"}, "annotations": {"Note": "y"}},
            "spec": {
                "topologySpreadConstraints": [
                    {"NodeTaintsPolicy": "Honor", "labelSelector": {"MatchLabels": {"A": "b"}}}
                ]
            },
        }
    )
    assert found == {
        "metadata": {"labels": {"App": "x"}, "annotations": {"Note": "y"}},
        "spec": {
            "topologySpreadConstraints": [{"nodeTaintsPolicy": "Honor", "labelSelector": {"matchLabels": {"A": "b"}}}]
        },
    }
