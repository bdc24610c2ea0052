"""Options and fixtures of the conformance tests: where the vectors and the measured values lie, and what to make of them.

The vectors belong to kube-scheduler, not to this project, and lie outside of it. A test that needs a folder which is not there is skipped with a message.
`docs/conformance.md` says how to run and how to read the report.
"""

from __future__ import annotations

from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
VECTORS = PROJECT.parent / "shared" / "conformance"
MEASURED = PROJECT.parent / "shared" / "measured"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "replay of what kube-scheduler decided")
    group.addoption(
        "--vectors", metavar="DIR", default=None, help="the golden vectors (default: ../shared/conformance)"
    )
    group.addoption("--measured", metavar="DIR", default=None, help="the measured values (default: ../shared/measured)")
    group.addoption(
        "--family",
        metavar="NAME",
        action="append",
        default=None,
        help="only this family of vectors; may be given again",
    )
    group.addoption("--report", metavar="FILE", default=None, help="write the result as JSON")
    group.addoption(
        "--full", action="store_true", default=False, help="fail on everything in the vectors, PostFilter included"
    )


def chosen_dir(config: pytest.Config, option: str, default: Path) -> Path:
    """The folder that was asked for, or the default. These options are not known where pytest was started for other tests too."""
    given = config.getoption(option, default=None)
    return Path(given) if given else default


@pytest.fixture(scope="session")
def vectors_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of the golden vectors."""
    return existing(chosen_dir(request.config, "vectors", VECTORS), "--vectors")


@pytest.fixture(scope="session")
def measured_dir(request: pytest.FixtureRequest) -> Path:
    """The folder of the measured values."""
    return existing(chosen_dir(request.config, "measured", MEASURED), "--measured")


def existing(folder: Path, option: str) -> Path:
    """`folder`, or a skip with a message where there is none."""
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; give the folder with {option}")
    return folder
