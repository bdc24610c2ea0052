# ranking.pxi: from raw scores to the node that is taken.

cdef enum:
    NORMALIZE_NONE = 0
    NORMALIZE_MAX = 1
    NORMALIZE_REVERSED_MAX = 2


def weigh(const amount[::1] raw, const flag[::1] alive, amount[::1] totals, amount weight, int normalization, Py_ssize_t n):
    """Normalise `raw` over the nodes that are alive, times `weight`, added to `totals`.

    Normalisation is 0 (none), 1 (DefaultNormalizeScore) or 2 (DefaultNormalizeScore reversed). Returns None, or the
    first score outside 0..100.
    """
    if n < 0 or raw.shape[0] < n or alive.shape[0] < n or totals.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {raw.shape[0]}, {alive.shape[0]} and {totals.shape[0]} given")
    cdef Py_ssize_t i
    cdef amount highest = 0, score, bad = 0
    cdef bint wrong = False
    with nogil:
        if normalization != NORMALIZE_NONE:
            for i in range(n):
                if alive[i] and raw[i] > highest:
                    highest = raw[i]
        for i in range(n):
            if not alive[i]:
                continue
            score = raw[i]
            if normalization != NORMALIZE_NONE:
                if highest == 0:
                    if normalization == NORMALIZE_REVERSED_MAX:
                        score = 100
                else:
                    score = 100 * score // highest
                    if normalization == NORMALIZE_REVERSED_MAX:
                        score = 100 - score
            if (score < 0 or score > 100) and not wrong:
                wrong = True
                bad = score
            totals[i] += score * weight
    return bad if wrong else None


def best(const amount[::1] totals, const flag[::1] alive, Py_ssize_t n):
    """The largest total among the nodes that are alive and how many have it: (total, count); count is 0 where none is
    alive."""
    if n < 0 or totals.shape[0] < n or alive.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {totals.shape[0]} and {alive.shape[0]} given")
    cdef Py_ssize_t i, count = 0
    cdef amount top = 0
    with nogil:
        for i in range(n):
            if not alive[i]:
                continue
            if count == 0 or totals[i] > top:
                top = totals[i]
                count = 1
            elif totals[i] == top:
                count += 1
    return top, count


def nth_with(const amount[::1] totals, const flag[::1] alive, amount total, Py_ssize_t k, Py_ssize_t n):
    """The slot of the k-th (from 0) node alive whose total is `total`."""
    if n < 0 or totals.shape[0] < n or alive.shape[0] < n:
        raise ValueError(f"{n} slots asked for, {totals.shape[0]} and {alive.shape[0]} given")
    cdef Py_ssize_t i
    for i in range(n):
        if alive[i] and totals[i] == total:
            if k == 0:
                return i
            k -= 1
    raise IndexError("fewer nodes have that total")
