"""Who may import whom: the contracts in pyproject.toml hold, and leave no package out."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def test_nobody_imports_what_it_must_not() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    assert lint_imports.exists() or shutil.which("lint-imports"), "import-linter is not installed: make setup"
    ran = subprocess.run(
        [lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_package_has_its_place_in_the_layers() -> None:
    layers = next(contract for contract in CONTRACTS if contract["type"] == "layers")["layers"]
    placed = set(re.findall(r"ksched\.(\w+)", " ".join(layers)))
    found = {path.name for path in (ROOT / "ksched").iterdir() if (path / "__init__.py").exists()}
    found |= {path.stem for path in (ROOT / "ksched").glob("*.py")} - {"__init__", "__main__"}
    assert found - placed == set()


def test_a_forbidden_import_is_forbidden_to_every_package_but_those_named() -> None:
    allowed = {"kubernetes_asyncio": {"api"}, "orjson": {"api", "sandbox"}, "uvloop": {"cli"}}
    found = {path.name for path in (ROOT / "ksched").iterdir() if (path / "__init__.py").exists()}
    forbidden = [contract for contract in CONTRACTS if contract["type"] == "forbidden"]
    assert {name for contract in forbidden for name in contract["forbidden_modules"]} == set(allowed)
    for contract in forbidden:
        (library,) = contract["forbidden_modules"]
        checked = {name.removeprefix("ksched.") for name in contract["source_modules"]}
        assert found - checked == allowed[library]
