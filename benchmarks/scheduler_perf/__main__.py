"""`python -m benchmarks.scheduler_perf`."""

from benchmarks.scheduler_perf.cli import main

if __name__ == "__main__":
    main(prog_name="python -m benchmarks.scheduler_perf")
