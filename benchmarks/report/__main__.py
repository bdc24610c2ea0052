"""`python -m benchmarks.report`: a page or a picture from result files, one per scheduler."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.report import write_html, write_png
from benchmarks.scheduler_perf import results
from ksched.errors import KschedError


@click.command(help=__doc__, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--html", "html_path", type=click.Path(path_type=Path), help="Write a self-contained page here.")
@click.option("--png", "png_path", type=click.Path(path_type=Path), help="Write the charts here (needs matplotlib).")
def main(*, files: tuple[Path, ...], html_path: Path | None, png_path: Path | None) -> None:
    """Make what was asked for."""
    if html_path is None and png_path is None:
        raise click.UsageError("nothing to do: give --html, --png, or both")
    try:
        documents = [results.read(file) for file in files]
        if html_path is not None:
            write_html(html_path, documents)
        if png_path is not None:
            write_png(png_path, documents)
    except KschedError as fault:
        raise click.ClickException(str(fault)) from fault


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.report")
