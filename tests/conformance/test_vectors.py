"""kube-scheduler's golden vectors: every pod must be decided as it was there.

One test per family. What a family must show, and what `--full` adds, is in docs/conformance.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.cases import families
from tests.conformance.options import REPORT, VECTORS, chosen_dir
from tests.conformance.replay import replay_family


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per file in the folder of vectors; without the folder one test that is skipped."""
    folder = chosen_dir(metafunc.config, "vectors", VECTORS)
    found = sorted(families(folder)) if folder.is_dir() else []
    asked = metafunc.config.getoption("family", default=None)
    unknown = sorted(set(asked or ()) - set(found))
    if found and unknown:
        raise pytest.UsageError(f"--family {unknown[0]}: expected one of {', '.join(found)}")
    metafunc.parametrize("family", [name for name in found if not asked or name in asked] or [""])


def test_every_pod_is_decided_as_kube_scheduler_did(
    family: str, vectors_dir: Path, request: pytest.FixtureRequest
) -> None:
    if not family:
        pytest.skip(f"{vectors_dir} holds no file of vectors (*.jsonl or *.jsonl.gz)")
    report = replay_family(family, families(vectors_dir)[family])
    request.config.stash[REPORT].families[family] = report
    assert report.cases, f"{families(vectors_dir)[family]} holds no case"
    if failures := report.failures(full=request.config.getoption("full", default=False)):
        pytest.fail(failures, pytrace=False)
