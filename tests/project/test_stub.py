"""The stub of the native module says what the built module has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALLOWLIST = Path(__file__).with_name("stubtest.allowlist")


def test_stub_and_module_agree() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "--allowlist", str(ALLOWLIST), "ksched._core"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
