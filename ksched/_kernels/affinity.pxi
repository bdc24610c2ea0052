# affinity.pxi: what counts of pods per topology domain mean for InterPodAffinity.
#
# `domains` says which domain of a label each slot has, -1 for none; `counts` has a place for every domain
# (cache/domains). Plain rule: ksched/plugins/inter_pod_affinity.py.


def require_domains(
    const code[::1] domains, const code[::1] counts, amount least, flag verdict, flag[::1] out, Py_ssize_t n
):
    """Where `out` is still 0: `verdict` for a slot without a domain, or whose domain has fewer than `least`."""
    if n < 0 or domains.shape[0] < n or out.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {domains.shape[0]} and {out.shape[0]} given")
    cdef Py_ssize_t i, size = counts.shape[0]
    cdef int32_t domain
    with nogil:
        for i in range(n):
            domain = domains[i]
            if out[i] == 0 and (domain < 0 or (counts[domain] if domain < size else 0) < least):
                out[i] = verdict


def avoid_domains(const code[::1] domains, const code[::1] counts, flag verdict, flag[::1] out, Py_ssize_t n):
    """Where `out` is still 0: `verdict` for a slot whose domain has any."""
    if n < 0 or domains.shape[0] < n or out.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {domains.shape[0]} and {out.shape[0]} given")
    cdef Py_ssize_t i, size = counts.shape[0]
    cdef int32_t domain
    with nogil:
        for i in range(n):
            domain = domains[i]
            if out[i] == 0 and 0 <= domain < size and counts[domain] > 0:
                out[i] = verdict


def add_affinity_scores(const code[::1] domains, const code[::1] counts, amount weight, amount[::1] sums, Py_ssize_t n):
    """Add weight * count for each slot with a domain."""
    if n < 0 or domains.shape[0] < n or sums.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {domains.shape[0]} and {sums.shape[0]} given")
    cdef Py_ssize_t i, size = counts.shape[0]
    cdef int32_t domain
    with nogil:
        for i in range(n):
            domain = domains[i]
            if 0 <= domain < size:
                sums[i] += weight * counts[domain]


cdef enum:
    SMALL_SPREAD = 4096     # differences up to which each result is computed once instead of once per node


cdef inline amount between(amount above, amount spread) noexcept nogil:
    return <amount>(100.0 * (<double>above / <double>spread))


def normalize_between(const amount[::1] raw, const flag[::1] alive, amount[::1] out, Py_ssize_t n):
    """0..100 between the lowest and the highest score of the slots that are alive, all 0 where these are the same.

    The division comes first, as in kube-scheduler: 29 of 100 is 28.
    """
    if n < 0 or raw.shape[0] < n or alive.shape[0] < n or out.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {raw.shape[0]}, {alive.shape[0]} and {out.shape[0]} given")
    cdef Py_ssize_t i
    cdef amount highest = INT64_MIN, lowest = INT64_MAX, spread = 0
    cdef amount scaled[SMALL_SPREAD + 1]
    with nogil:
        for i in range(n):
            if alive[i]:
                if raw[i] > highest:
                    highest = raw[i]
                if raw[i] < lowest:
                    lowest = raw[i]
        if highest > lowest:
            spread = highest - lowest
        if spread == 0:
            for i in range(n):
                out[i] = 0
        elif spread <= SMALL_SPREAD and spread < n:
            for i in range(spread + 1):
                scaled[i] = between(i, spread)
            for i in range(n):
                out[i] = scaled[raw[i] - lowest] if alive[i] else 0
        else:
            for i in range(n):
                out[i] = between(raw[i] - lowest, spread) if alive[i] else 0
