"""Every function of the native module, from a thousand to a million nodes; and one pod's cycle on whole clusters.

    timing.py    how a call is timed
    columns.py   made-up columns, as a cluster's table has them
    cases.py     the functions of ksched._core: a new one is a function with the decorator `kernel`
    cycles.py    pods through the engine's cycle: one shape, many shapes, growing clusters

`python -m benchmarks.kernels` runs all of it; tests hold `cases` against the native module's stub, so that none is
forgotten.
"""
