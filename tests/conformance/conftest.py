"""Options and fixtures of the conformance tests: where the vectors and measured values lie, and the report.

The vectors belong to kube-scheduler, not to this project, and lie outside of it. A test that needs a folder which is
not there is skipped with a message. docs/conformance.md says how to run and how to read the report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.options import MEASURED, REPORT, VECTORS, chosen_dir
from tests.conformance.report import Report


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "replay of what kube-scheduler decided")
    group.addoption("--vectors", metavar="DIR", help="the golden vectors (default: ../shared/conformance)")
    group.addoption("--measured", metavar="DIR", help="the measured values (default: ../shared/measured)")
    group.addoption("--family", metavar="NAME", action="append", help="only this family of vectors; may be repeated")
    group.addoption("--report", metavar="FILE", help="write the result as JSON")
    group.addoption("--full", action="store_true", help="fail on everything in the vectors, PostFilter included")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REPORT] = Report(
        forms=os.environ.get("KSCHED_FORMS") or "native",
        vectors=chosen_dir(config, "vectors", VECTORS),
        measured=chosen_dir(config, "measured", MEASURED),
    )


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    report = config.stash[REPORT]
    if not report.families and not report.measured_files:
        return
    terminalreporter.section(f"conformance, {report.forms} forms")
    for line in report.lines():
        terminalreporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if path := session.config.getoption("report", default=None):
        session.config.stash[REPORT].write(Path(path))


@pytest.fixture(scope="session")
def vectors_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of the golden vectors."""
    return existing(chosen_dir(request.config, "vectors", VECTORS), "--vectors")


@pytest.fixture(scope="session")
def measured_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of the measured values."""
    return existing(chosen_dir(request.config, "measured", MEASURED), "--measured")


@pytest.fixture(scope="session")
def record_measured(request: pytest.FixtureRequest) -> Callable[[Mapping[str, Any]], None]:
    """Puts the result of a measured file into the report: a mapping as a `Tally` makes it."""
    return request.config.stash[REPORT].add_measured


def existing(folder: Path, option: str) -> Path:
    """`folder`, or a skip with a message where there is none."""
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; give the folder with {option}")
    return folder
