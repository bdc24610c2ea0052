# cython: freethreading_compatible=True
"""The native module: arithmetic over columns of nodes, nothing else.

Contents, each a section under `_kernels/`:

    types.pxd       the C types that sections share
    resources.pxi   NodeResourcesFit's filter and scorers, NodeResourcesBalancedAllocation
    sieve.pxi       which nodes are left, and why the others are not
    ranking.pxi     normalising, weighing, and picking the best
    domains.pxi     pods counted over topology domains, and what PodTopologySpread makes of that
    affinity.pxi    what such counts mean for InterPodAffinity
    board.pxi       one pod shape's verdicts and totals, kept up to date from a journal
    tallies.pxi     counts per node and per domain that follow the pods

No policy and no strings live here. The plain Python form of each rule stands in `ksched/plugins`; tests hold the two
against each other.
"""

include "_kernels/resources.pxi"
include "_kernels/sieve.pxi"
include "_kernels/ranking.pxi"
include "_kernels/domains.pxi"
include "_kernels/affinity.pxi"
include "_kernels/board.pxi"
include "_kernels/tallies.pxi"
