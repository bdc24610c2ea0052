"""What ksched costs, measured: whole workloads, single kernels, and one pod's way in microseconds.

    scheduler_perf/  workloads in kube-scheduler's own format, against any scheduler
    report/          pages and pictures of result files
    compare.py       two or more result files beside each other
    kernels/         every function of the native module, from a thousand to a million nodes
    budget/          what one pod costs, stage by stage, from watch bytes to confirmation
    fairness.py      what a burst of pods costs a more urgent one
    workloads/       the project's own workloads, in the same format

docs/performance.md says how to read what they print.
"""
