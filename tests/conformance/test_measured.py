"""Values measured from kube-scheduler's packages: every case of a file must come out exactly.

One test per file whose subject ksched has. `--measured DIR` names another copy of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conformance import measured_config, measured_units
from tests.conformance.report import shown

REPLAYS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    **{f"units/{name}.jsonl": measured_units.replay for name in measured_units.UNITS},
    measured_config.FILE: measured_config.replay,
}


@pytest.mark.parametrize("file", sorted(REPLAYS))
def test_every_case_comes_out_exactly(
    file: str, measured_dir: Path, record_measured: Callable[[Mapping[str, Any]], None]
) -> None:
    path = measured_dir / file
    if not path.is_file():
        pytest.skip(f"{path} is not there; give the folder with --measured")
    result = REPLAYS[file](path)
    record_measured(result)
    assert result["cases"], f"{path} holds no case"
    if result["exact"] < result["cases"]:
        first = "\n".join(f"  {shown(difference)}" for difference in result["differences"])
        pytest.fail(f"{file}: {result['exact']} of {result['cases']} cases are exact\n{first}", pytrace=False)
