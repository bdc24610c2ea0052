"""What the documents tell people to type exists: make targets, ksched's commands and flags, files that are linked."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from ksched.cli import COMMANDS, cli

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").iterdir()])
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))


def typed_in(text: str) -> list[str]:
    """Lines of code blocks and pieces in backquotes, comments and prompts taken off, continued lines joined."""
    pieces = re.findall(r"`([^`\n]+)`", text)
    for block in re.findall(r"^```[^\n]*\n(.*?)^```", text, re.M | re.S):
        pieces += block.replace("\\\n", " ").splitlines()
    return [re.sub(r"(^|\s)#.*", "", piece).strip().removeprefix("$ ").strip() for piece in pieces]


def test_readme_begins_with_the_demo_and_the_tests() -> None:
    commands = [line for line in typed_in((ROOT / "README.md").read_text()) if line.startswith("make ")]
    in_blocks = re.findall(r"^make \S+", (ROOT / "README.md").read_text(), re.M)
    assert in_blocks[:2] == ["make demo", "make test"]
    assert commands


@pytest.mark.parametrize("document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_make_targets_exist(document: Path) -> None:
    named = [line.split() for line in typed_in(document.read_text()) if line.startswith("make ")]
    wanted = {word for words in named for word in words[1:] if "=" not in word}
    assert wanted - TARGETS == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_ksched_commands_and_flags_exist(document: Path) -> None:
    for line in typed_in(document.read_text()):
        if line.startswith("ksched "):
            check_usage(line)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_in_help_exist(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    examples = [line.strip() for line in (command.help or "").splitlines() if line.strip().startswith("ksched ")]
    if name != "version":
        assert examples, "the help shows no example"
    for line in examples:
        check_usage(line)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_has_help(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    options = [option for option in command.params if isinstance(option, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text())
    assert [link for link in links if not (document.parent / link).exists()] == []


def check_usage(line: str) -> None:
    """`ksched NAME ...` must name a command, and its flags must be that command's."""
    words = shlex.split(re.split(r"[|;&>]| \\$", line)[0])
    if len(words) < 2 or words[1].startswith("-") or words[1] == "COMMAND":
        return
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None, f"{line}: there is no command {words[1]}"
    known = {flag for option in command.params for flag in (*option.opts, *option.secondary_opts)} | {"-h", "--help"}
    flags = [word.strip("[]").partition("=")[0] for word in words[2:] if word.strip("[]").startswith("-")]
    assert [flag for flag in flags if flag not in known] == [], line
