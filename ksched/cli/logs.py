"""How ksched writes its log: one line per record on standard error, as kube-scheduler does.

`text` is klog's form, which log collectors for Kubernetes already know; `json` is the form of Kubernetes'
component logs. What a caller passes as `extra={...}` is written as key and value after the message in both.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import msgspec

Format = Literal["text", "json"]

DEBUG_FROM = 2
"""The verbosity from which records of level DEBUG are written: one line per pod and more."""

_LETTERS = {logging.DEBUG: "I", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_OWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
"""What every record has; anything else came from `extra`."""


def set_up(verbosity: int, form: Format, stream: TextIO | None = None) -> None:
    """Send everything that ksched logs to `stream` (standard error); tracebacks are written from verbosity 1."""
    handler = logging.StreamHandler(stream or sys.stderr)
    tracebacks = verbosity >= 1
    handler.setFormatter(JsonLines(tracebacks=tracebacks) if form == "json" else KlogLines(tracebacks=tracebacks))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    # Libraries (aiohttp, asyncio) speak up when something is wrong; their routine is not ours to print.
    root.setLevel(logging.WARNING)
    logging.getLogger("ksched").setLevel(logging.DEBUG if verbosity >= DEBUG_FROM else logging.INFO)
    logging.captureWarnings(capture=True)


class KlogLines(logging.Formatter):
    """`I1201 11:47:10.123456    4711 scheduler.py:212] "Bound pod" pod="default/web-1" node="n7"`."""

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """The record as klog would write it: structured when it carries keys and values, plain otherwise."""
        when = time.strftime("%m%d %H:%M:%S", time.localtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        letter = _LETTERS.get(record.levelno, "I")
        head = f"{letter}{when}.{micros:06d} {os.getpid():7d} {record.filename}:{record.lineno}]"
        fields = dict(_extra(record))
        if record.exc_info and record.exc_info[1] is not None:
            fields["err"] = _one_line(record.exc_info[1])
        message = record.getMessage()
        if not fields:
            return f"{head} {message}"
        line = f"{head} {_quoted(message)} " + " ".join(f"{key}={_value(value)}" for key, value in fields.items())
        if self._tracebacks and (lines := _traceback(record)):
            line += f"\n{lines}"
        return line


class JsonLines(logging.Formatter):
    """`{"ts":1764589630123.4,"caller":"scheduler.py:212","msg":"Successfully bound pod to node","v":0,"pod":...}`."""

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self._tracebacks = tracebacks

    def format(self, record: logging.LogRecord) -> str:
        """The record as one JSON object; `v` is left out of errors, which have `err` instead, as Kubernetes does."""
        line: dict[str, Any] = {
            "ts": round(record.created * 1000, 3),
            "caller": f"{record.filename}:{record.lineno}",
            "msg": record.getMessage(),
        }
        if record.levelno < logging.ERROR:
            line["v"] = DEBUG_FROM if record.levelno <= logging.DEBUG else 0
        for key, value in _extra(record).items():
            line[key] = value if isinstance(value, str | int | float | bool) or value is None else str(value)
        if record.exc_info and record.exc_info[1] is not None:
            line["err"] = _one_line(record.exc_info[1])
            if self._tracebacks:
                line["stacktrace"] = _traceback(record)
        return msgspec.json.encode(line).decode()


def _extra(record: logging.LogRecord) -> Mapping[str, Any]:
    return {key: value for key, value in record.__dict__.items() if key not in _OWN}


def _traceback(record: logging.LogRecord) -> str:
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return "".join(traceback.format_exception(*record.exc_info)).rstrip()


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _value(value: Any) -> str:
    """Strings are quoted, numbers and booleans are not; anything else is quoted as it prints."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return _quoted(str(value))
