"""The command line: `ksched run`, `sandbox`, `demo` and `version`.

Each command is a module of this package that is imported when it is asked for, because the scheduler's imports
cost more time than `--help` should take. A fault that ksched knows (`errors.KschedError`) ends any command with
one clear line and exit code 1; wrong usage ends it with 2; a clean stop is 0, and 130 where Ctrl-C stopped what has
an end of its own.

    run.py        the scheduler against a cluster
    sandbox.py    the embedded API server, in this process
    demo/         both of them as processes, a made-up cluster, and a summary
    version.py    which ksched this is
    serving.py    the event loop and what signals do to it
    processes.py  child processes that never outlive their parent
    logs.py       how records are written
"""

from __future__ import annotations

import importlib
import signal
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from ksched.errors import KschedError

COMMANDS = {
    "run": "Schedule the pods of a cluster.",
    "sandbox": "Run an embedded Kubernetes API server.",
    "demo": "Schedule a made-up cluster on this machine.",
    "version": "Print the version.",
}
"""Name and summary, as `ksched --help` lists them; `ksched.cli.NAME.command` is the command NAME."""

VERBOSITY = "ksched.verbosity"
"""The context's key for the number given with -v: a traceback follows the one line from 1."""


class Failure(click.ClickException):
    """A fault that ksched knows, as one line on standard error; exit code 1."""

    def show(self, file: Any = None) -> None:
        """Write the line; a multi-line message stays as it is."""
        click.echo(f"ksched: {self.message}", err=True, file=file)


class Commands(click.Group):
    """The commands in `COMMANDS`, imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, without importing anything."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"ksched.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what ksched knows to be a fault becomes one line."""
        try:
            return super().invoke(ctx)
        except KschedError as fault:
            if ctx.meta.get(VERBOSITY, 0) >= 1:
                raise
            raise Failure(str(fault)) from fault
        except KeyboardInterrupt:
            # Ctrl-C while a command gets ready; once its loop runs, serving.py has handlers of its own.
            ctx.exit(128 + signal.SIGINT)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="Start with `ksched demo`: it needs no cluster. `ksched COMMAND --help` shows flags and examples.",
)
def cli() -> None:
    """ksched schedules the pods of a Kubernetes cluster, in place of kube-scheduler."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit: 0 after a clean stop, 1 after a failure, 2 for wrong usage, 130 for Ctrl-C."""
    cli.main(args=None if arguments is None else list(arguments), prog_name="ksched")
    raise AssertionError("click's main exits")  # it is declared to return
