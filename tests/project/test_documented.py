"""Every module says what it owns, and every public name what a caller may rely on."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "ksched").rglob("*.py"))
PUBLIC = ("ksched.framework", "ksched.testing")


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(ROOT)) for path in MODULES])
def test_module_is_documented(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "what does this file own, and why?"
    assert list(undocumented(tree)) == []


def undocumented(tree: ast.Module) -> Iterator[str]:
    """Public classes and functions without a docstring."""
    for item in tree.body:
        if isinstance(item, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("_"):
            overload = any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in item.decorator_list)
            if not ast.get_docstring(item) and not overload:
                yield item.name


def public_names() -> list[str]:
    """`package.name` for everything that the public packages export."""
    return [f"{package}.{name}" for package in PUBLIC for name in importlib.import_module(package).__all__]


@pytest.mark.parametrize("name", public_names())
def test_public_name_is_documented(name: str) -> None:
    package, _, attribute = name.rpartition(".")
    thing = getattr(importlib.import_module(package), attribute)
    if not inspect.isclass(thing) and not inspect.isroutine(thing):
        return  # a constant is described by a comment or a string below it, which nothing can look up
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        methods = {key: value for key, value in vars(thing).items() if not key.startswith("_")}
        silent = [key for key, value in methods.items() if inspect.isroutine(value) and not inspect.getdoc(value)]
        assert silent == []


@pytest.mark.parametrize("package", PUBLIC)
def test_public_package_names_what_it_exports(package: str) -> None:
    module = importlib.import_module(package)
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name.lower() == name, name))
