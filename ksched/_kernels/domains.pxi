# domains.pxi: counting over topology domains, for PodTopologySpread.
#
# A node's domain is the id of its value of a label, -1 where it has none (cache/table.LabelColumn). Pods are counted per
# node (cache/counts) and added up per domain here; what a count means for a node is worked out in one pass per
# constraint, in the order of constraints, since sums of floats depend on it.

cdef enum:
    MISSING_LABEL = 1
    TOO_SKEWED = 2


def count_domains(
    const code[::1] domains, const code[::1] pods, const flag[::1] included, code[::1] counts, flag[::1] seen,
    Py_ssize_t absent, Py_ssize_t n
):
    """Add `pods` up by domain over the slots that are included, and return how many domains they have.

    A slot without a domain counts for the domain `absent`, or not at all if that is -1.
    """
    if n < 0 or domains.shape[0] < n or pods.shape[0] < n or included.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {domains.shape[0]}, {pods.shape[0]} and {included.shape[0]} given")
    if counts.shape[0] != seen.shape[0] or absent < -1 or absent >= counts.shape[0]:
        raise ValueError(f"{counts.shape[0]} and {seen.shape[0]} domains given, and {absent} for none")
    cdef Py_ssize_t i, domain, found = 0, size = counts.shape[0]
    with nogil:
        for i in range(size):
            counts[i] = 0
            seen[i] = 0
        for i in range(n):
            if not included[i]:
                continue
            domain = domains[i]
            if domain < 0:
                domain = absent
            if domain < 0 or domain >= size:
                continue
            counts[domain] += pods[i]
            found += not seen[domain]
            seen[domain] = 1
    return found


def judge_domains(const code[::1] domains, const code[::1] counts, amount most, flag[::1] out, Py_ssize_t n):
    """Where `out` is still 0: 1 for a slot without a domain, 2 for one whose domain has more than `most`."""
    if n < 0 or domains.shape[0] < n or out.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {domains.shape[0]} and {out.shape[0]} given")
    if counts.shape[0] == 0:
        raise ValueError("no domains given, not even the one of slots without the label")
    cdef Py_ssize_t i
    cdef int32_t domain, size = <int32_t>counts.shape[0]
    cdef flag said
    cdef code count
    with nogil:
        for i in range(n):  # without branches: which way a node goes cannot be foreseen
            domain = domains[i]
            count = counts[domain if 0 <= domain < size else 0]
            count = count if domain < size else 0
            said = TOO_SKEWED if count > most else 0
            said = MISSING_LABEL if domain < 0 else said
            out[i] = out[i] if out[i] else said


def distinct_domains(
    const code[::1] domains, const flag[::1] wanted, flag[::1] seen, Py_ssize_t absent, Py_ssize_t n
):
    """How many domains the wanted slots have; `seen` is room to work in, one place per domain."""
    if n < 0 or domains.shape[0] < n or wanted.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {domains.shape[0]} and {wanted.shape[0]} given")
    if absent < -1 or absent >= seen.shape[0]:
        raise ValueError(f"{seen.shape[0]} domains given, and {absent} for none")
    cdef Py_ssize_t i, domain, found = 0, size = seen.shape[0]
    with nogil:
        for i in range(size):
            seen[i] = 0
        for i in range(n):
            if not wanted[i]:
                continue
            domain = domains[i]
            if domain < 0:
                domain = absent
            if domain < 0 or domain >= size or seen[domain]:
                continue
            seen[domain] = 1
            found += 1
            if found == size:
                break
    return found


def add_spread_scores(
    const code[::1] domains, const code[::1] counts, bint per_slot, double weight, double plus, double[::1] sums,
    Py_ssize_t n
):
    """Add count * weight + plus for each slot with a domain; counts are of domains, or `per_slot`."""
    if n < 0 or domains.shape[0] < n or sums.shape[0] < n or (per_slot and counts.shape[0] < n):
        raise ValueError(f"{n} slots asked for, {domains.shape[0]}, {sums.shape[0]} and {counts.shape[0]} given")
    cdef Py_ssize_t i
    cdef int32_t domain, size = <int32_t>counts.shape[0]
    cdef double* shares
    if per_slot:
        with nogil:
            for i in range(n):
                sums[i] = sums[i] + (<double>counts[i] * weight + plus if domains[i] >= 0 else 0.0)
        return
    shares = <double*>malloc((size + 1) * sizeof(double))
    if shares == NULL:
        raise MemoryError
    with nogil:
        for i in range(size):
            shares[i] = <double>counts[i] * weight + plus
        shares[size] = 0.0
        for i in range(n):
            domain = domains[i]
            sums[i] = sums[i] + shares[domain if 0 <= domain < size else size]
        free(shares)


def round_sums(const double[::1] sums, const flag[::1] counted, amount[::1] out, Py_ssize_t n):
    """The nearest whole numbers, halves away from zero; 0 for slots that are not counted."""
    if n < 0 or sums.shape[0] < n or counted.shape[0] < n or out.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {sums.shape[0]}, {counted.shape[0]} and {out.shape[0]} given")
    cdef Py_ssize_t i
    cdef amount whole
    cdef double rest
    with nogil:
        for i in range(n):
            whole = <amount>sums[i]
            rest = sums[i] - <double>whole
            out[i] = whole + (rest >= 0.5) - (rest <= -0.5) if counted[i] else 0


def normalize_spread(const amount[::1] raw, const flag[::1] alive, const flag[::1] counted, amount[::1] out, Py_ssize_t n):
    """100 * (highest + lowest - score) / highest over the slots that are alive and counted, 100 where the highest is 0;
    0 for all others."""
    if n < 0 or raw.shape[0] < n or alive.shape[0] < n or counted.shape[0] < n or out.shape[0] < n:
        raise ValueError(
            f"{n} slots asked for, {raw.shape[0]}, {alive.shape[0]}, {counted.shape[0]} and {out.shape[0]} given"
        )
    cdef Py_ssize_t i
    cdef amount highest = 0, lowest = INT64_MAX
    cdef double divisor
    with nogil:
        for i in range(n):
            if alive[i] and counted[i]:
                if raw[i] > highest:
                    highest = raw[i]
                if raw[i] < lowest:
                    lowest = raw[i]
        divisor = <double>highest
        for i in range(n):
            if not (alive[i] and counted[i]):
                out[i] = 0
            elif highest == 0:
                out[i] = 100
            elif highest < <amount>1 << 44:  # so that the whole part of the quotient of doubles is exact, and it is faster
                out[i] = <amount>(<double>(100 * (highest + lowest - raw[i])) / divisor)
            else:
                out[i] = 100 * (highest + lowest - raw[i]) // highest
