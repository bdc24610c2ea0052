"""Where the vectors and measured values are looked for, and the report that the tests of one run share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.report import Report

_BESIDE = Path(__file__).parents[3] / "shared"
VECTORS = _BESIDE / "conformance"
MEASURED = _BESIDE / "measured"

REPORT = pytest.StashKey[Report]()


def chosen_dir(config: pytest.Config, option: str, default: Path) -> Path:
    """The folder that was asked for, or the default; where pytest was not started for this folder, nobody could ask."""
    given = config.getoption(option, default=None)
    return Path(given) if given else default
