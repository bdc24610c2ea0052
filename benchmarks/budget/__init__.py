"""Where one pod's microseconds go, from the bytes of a watch to the confirmation of its binding.

    stages.py   the stages: which functions they are, and how time is charged to them
    run.py      a scheduler in this process, a sandbox and a loader beside it
    load.py     the loader's process

`python -m benchmarks.budget` shows the table. The functions are the scheduler's own, wrapped; what no stage accounts
for is the event loop, the sockets and Python in between, and is shown, too.
"""
