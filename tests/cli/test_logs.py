"""Log lines: klog's text and Kubernetes' JSON."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from ksched.cli import logs


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Leave logging as it was found."""
    root, ours = logging.getLogger(), logging.getLogger("ksched")
    handlers, level, our_level = root.handlers[:], root.level, ours.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = handlers
    root.setLevel(level)
    ours.setLevel(our_level)


def written(form: logs.Format, verbosity: int = 0, **arguments: object) -> str:
    """What one warning of ksched's looks like."""
    out = io.StringIO()
    logs.set_up(verbosity, form, out)
    logging.getLogger("ksched.engine").warning(arguments.pop("message", "no node for pod"), **arguments)  # type: ignore[arg-type]
    return out.getvalue()


def fault() -> ValueError:
    """An exception with a traceback and two lines of text."""
    try:
        raise ValueError("first\n second")
    except ValueError as error:
        return error


def test_text_is_klogs_header_and_the_plain_message() -> None:
    line = written("text", message="no pods (100%)")
    assert re.fullmatch(r"W\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logs\.py:\d+\] no pods \(100%\)\n", line)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"pod": "default/web"}, '"no node for pod" pod="default/web"', id="a text is quoted"),
        pytest.param({"nodes": 3, "took": 0.5}, '"no node for pod" nodes=3 took=0.5', id="numbers are not quoted"),
        pytest.param({"held": True}, '"no node for pod" held=true', id="a boolean is written as in Go"),
        pytest.param(
            {"why": 'a "b"\nc'}, '"no node for pod" why="a \\"b\\"\\nc"', id="quotes and line ends are escaped"
        ),
        pytest.param(
            {"nodes": ["a", "b"]}, "\"no node for pod\" nodes=\"['a', 'b']\"", id="anything else as it prints"
        ),
    ],
)
def test_text_with_keys_and_values(fields: dict[str, object], expected: str) -> None:
    assert written("text", extra=fields).partition("] ")[2] == expected + "\n"


def test_json_is_one_object_per_line() -> None:
    line = json.loads(written("json", extra={"pod": "default/web", "nodes": 3, "why": ["a"]}))
    assert re.fullmatch(r"test_logs\.py:\d+", line.pop("caller"))
    assert line.pop("ts") > 1.6e12
    assert line == {"msg": "no node for pod", "v": 0, "pod": "default/web", "nodes": 3, "why": "['a']"}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        pytest.param("text", 'err="first second"', id="text"),
        pytest.param("json", '"err":"first second"', id="json"),
    ],
)
def test_a_fault_is_one_line_and_its_traceback_comes_with_verbosity(form: logs.Format, expected: str) -> None:
    quiet = written(form, exc_info=fault())
    assert expected in quiet
    assert quiet.count("\n") == 1
    assert "Traceback" not in quiet
    assert "Traceback (most recent call last)" in written(form, verbosity=1, exc_info=fault())


@pytest.mark.parametrize(
    ("logger", "verbosity", "seen"),
    [
        pytest.param("ksched.queue", 0, False, id="a line per pod is not written by default"),
        pytest.param("ksched.queue", 2, True, id="a line per pod is written from verbosity 2"),
        pytest.param("asyncio", 9, False, id="the routine of libraries is never written"),
    ],
)
def test_debug_records(logger: str, verbosity: int, seen: bool) -> None:
    out = io.StringIO()
    logs.set_up(verbosity, "text", out)
    logging.getLogger(logger).debug("popped", extra={"pod": "default/web"})
    assert bool(out.getvalue()) is seen
