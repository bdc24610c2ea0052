"""Builds the one native module, `ksched._core`; everything else is in pyproject.toml.

OpenMP is used where the compiler has it and left out where it has not. `KSCHED_DEBUG=1` builds with bounds and overflow
checks, for CI and for finding faults.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

DEBUG = os.environ.get("KSCHED_DEBUG") == "1"

# Go neither fuses multiply and add nor reorders floating-point sums on amd64, and its int64 wraps around: both are part
# of the scores.
EXACT = ["-ffp-contract=off", "-fwrapv"]


def has_openmp() -> bool:
    """Whether a small program that uses OpenMP compiles and links."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n")
        command = [os.environ.get("CC", "cc"), "-fopenmp", str(source), "-o", str(Path(folder, "probe"))]
        try:
            return subprocess.run(command, capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            return False


openmp = ["-fopenmp"] if has_openmp() else []
kernels = sorted(str(path) for path in Path("ksched/_kernels").glob("*.p*"))

setup(
    ext_modules=cythonize(
        [
            Extension(
                "ksched._core",
                ["ksched/_core.pyx"],
                depends=kernels,
                extra_compile_args=["-O1" if DEBUG else "-O3", "-g", *EXACT, *openmp],
                extra_link_args=openmp,
            )
        ],
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "overflowcheck": False,
            "initializedcheck": DEBUG,
            "embedsignature": True,
        },
    )
)
