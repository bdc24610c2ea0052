"""Workloads in kube-scheduler's scheduler_perf format, against any scheduler and any API server.

cli.py          options; which workloads, how often, where results go
cases.py        workload files; operations.py: their operations; templates.py: their object templates
selection.py    label filters and exact names
needs.py        what cannot be run, and why; gates.py: what becomes of feature gates
executor.py     one run from beginning to end, in a world.py; server.py, schedulers.py, null.py: who takes part
creating.py, changing.py, waiting.py     what operations do, through loader.py
collecting.py   what is measured, from observation.py; measures.py: the arithmetic
results.py      the document that is kept; screen.py: what a person sees
"""
