# resources.pxi: what nodes have and what their pods have asked for.
#
# A row is one resource over all nodes, so the inner loops walk memory in order and resources that nobody asked for cost
# nothing. Rows live at fixed addresses (ksched/cache/table.py reserves the address space), so raw pointers are kept
# instead of passing memoryviews: 0.07 instead of 1.1 us a call.
#
# Plain rules: ksched/plugins/node_resources_fit.py and node_resources_balanced_allocation.py.

cimport cython
from libc.math cimport fabs, round as c_round, sqrt
from libc.stdlib cimport calloc, free, malloc, realloc

from ksched._kernels.types cimport INT64_MAX, INT64_MIN, amount, code, flag, int32_t, int64_t

cdef enum:
    MAX_ASKED = 21
    MAX_SCORED = 64
    TOO_MANY_PODS = 1
    UNRESOLVABLE_BIT = 22


cdef inline amount least_allocated_share(amount requested, amount capacity) noexcept nogil:
    """(capacity - requested) * 100 / capacity, 0 when over-committed; int64 arithmetic as upstream's
    leastRequestedScore."""
    if requested > capacity:
        return 0
    return (capacity - requested) * 100 // capacity


cdef inline amount most_allocated_share(amount requested, amount capacity) noexcept nogil:
    """min(requested, capacity) * 100 / capacity, as upstream's mostRequestedScore."""
    if requested > capacity:
        requested = capacity
    return requested * 100 // capacity


cdef inline amount broken_linear(const amount* utilization, const amount* score, Py_ssize_t points, amount p) noexcept nogil:
    """Upstream's BuildBrokenLinearFunction: multiplication before division, truncated towards zero (C's division does
    that)."""
    cdef Py_ssize_t i
    for i in range(points):
        if p <= utilization[i]:
            if i == 0:
                return score[0]
            return score[i - 1] + (score[i] - score[i - 1]) * (p - utilization[i - 1]) // (utilization[i] - utilization[i - 1])
    return score[points - 1]


cdef inline double spread_of(const double* fractions, Py_ssize_t n) noexcept nogil:
    """Standard deviation of the shares used, in upstream's order of operations: two shares subtract, halve and abs;
    more go left to right."""
    cdef double total = 0.0, mean, deviation, squares = 0.0
    cdef Py_ssize_t i
    if n <= 1:
        return 0.0
    if n == 2:
        return fabs((fractions[0] - fractions[1]) / 2.0)
    for i in range(n):
        total += fractions[i]
    mean = total / <double>n
    for i in range(n):
        deviation = fractions[i] - mean
        squares += deviation * deviation
    return sqrt(squares / <double>n)


cdef inline double share(amount used, amount capacity) noexcept nogil:
    cdef double fraction = <double>used / <double>capacity
    return 1.0 if fraction > 1.0 else fraction


@cython.final
cdef class Resources:
    """Allocatable and requested amounts: one row per resource, one column per node slot.

    Rows are appended with `add_row` and never move. Every amount is an int64 that wraps around, as in Go.
    """

    cdef amount** room
    cdef amount** used
    cdef Py_ssize_t rows
    cdef Py_ssize_t capacity
    cdef const amount* allowed_pods
    cdef amount* pod_count
    cdef list owners

    def __cinit__(self, amount[::1] allowed_pods, amount[::1] pod_count):
        self.room = NULL
        self.used = NULL
        self.rows = 0
        if allowed_pods.shape[0] != pod_count.shape[0] or pod_count.shape[0] == 0:
            raise ValueError("allowed_pods and pod_count must be columns of one length, at least 1")
        self.capacity = pod_count.shape[0]
        self.allowed_pods = &allowed_pods[0]
        self.pod_count = &pod_count[0]
        self.owners = [allowed_pods, pod_count]

    def __dealloc__(self):
        free(self.room)
        free(self.used)

    def add_row(self, amount[::1] room, amount[::1] used):
        """Append a resource and return its row."""
        if room.shape[0] != self.capacity or used.shape[0] != self.capacity:
            raise ValueError(f"a row must have {self.capacity} columns, got {room.shape[0]} and {used.shape[0]}")
        cdef amount** room_rows = <amount**>realloc(self.room, (self.rows + 1) * sizeof(amount*))
        if room_rows == NULL:
            raise MemoryError
        self.room = room_rows
        cdef amount** used_rows = <amount**>realloc(self.used, (self.rows + 1) * sizeof(amount*))
        if used_rows == NULL:
            raise MemoryError
        self.used = used_rows
        self.room[self.rows] = &room[0]
        self.used[self.rows] = &used[0]
        self.owners.append((room, used))
        self.rows += 1
        return self.rows - 1

    cdef int check_slots(self, Py_ssize_t n, Py_ssize_t given) except -1:
        if n < 0 or n > self.capacity or given < n:
            raise ValueError(f"{n} slots asked for, {given} given, {self.capacity} reserved")
        return 0

    cdef int check_rows(self, const int32_t[::1] rows, Py_ssize_t amounts, Py_ssize_t most) except -1:
        cdef Py_ssize_t j
        if rows.shape[0] != amounts:
            raise ValueError(f"{rows.shape[0]} rows but {amounts} amounts")
        if rows.shape[0] > most:
            raise ValueError(f"at most {most} resources at once, got {rows.shape[0]}")
        for j in range(rows.shape[0]):
            if rows[j] < 0 or rows[j] >= self.rows:
                raise IndexError(f"no row {rows[j]}: there are {self.rows}")
        return 0

    def book(self, Py_ssize_t slot, const int32_t[::1] rows, const amount[::1] amounts, Py_ssize_t sign):
        """Add (`sign` 1) or take away (-1) one pod's amounts at a slot, and count it."""
        if slot < 0 or slot >= self.capacity:
            raise IndexError(f"no slot {slot}")
        self.check_rows(rows, amounts.shape[0], rows.shape[0])
        cdef Py_ssize_t j
        for j in range(rows.shape[0]):
            self.used[rows[j]][slot] += sign * amounts[j]
        self.pod_count[slot] += sign

    def fit(self, const int32_t[::1] rows, const amount[::1] asked, const flag[::1] alive, code[::1] out, Py_ssize_t n):
        """Write NodeResourcesFit's code for each node that is alive.

        Bit 0: too many pods. Bit j+1: not enough of `rows[j]`. Bit 22: of one of them there is not enough even on the
        empty node. 0: fits.
        """
        self.check_slots(n, min(alive.shape[0], out.shape[0]))
        self.check_rows(rows, asked.shape[0], MAX_ASKED)
        if n == 0:
            return
        cdef const flag* keep = &alive[0]
        cdef code* answer = &out[0]
        cdef const amount* count = self.pod_count
        cdef const amount* allowed = self.allowed_pods
        cdef const amount* room
        cdef const amount* used
        cdef amount want
        cdef Py_ssize_t i, j
        cdef code bit
        cdef code unresolvable = 1 << UNRESOLVABLE_BIT
        with nogil:
            for i in range(n):
                answer[i] = TOO_MANY_PODS if count[i] + 1 > allowed[i] else 0
            for j in range(rows.shape[0]):
                want = asked[j]
                if want <= 0:
                    continue
                room, used = self.room[rows[j]], self.used[rows[j]]
                bit = <code>1 << <code>(j + 1)
                for i in range(n):
                    if want > room[i] - used[i]:
                        answer[i] |= bit if want <= room[i] else bit | unresolvable

    def score_least(self, const int32_t[::1] rows, const amount[::1] asked, const amount[::1] weights, amount[::1] out, Py_ssize_t n):
        """LeastAllocated: the weighted mean of free shares, over the resources that the node has."""
        self._score_linear(rows, asked, weights, out, n, False)

    def score_most(self, const int32_t[::1] rows, const amount[::1] asked, const amount[::1] weights, amount[::1] out, Py_ssize_t n):
        """MostAllocated: the weighted mean of used shares, over the resources that the node has."""
        self._score_linear(rows, asked, weights, out, n, True)

    cdef _score_linear(self, const int32_t[::1] rows, const amount[::1] asked, const amount[::1] weights, amount[::1] out, Py_ssize_t n, bint most):
        self.check_slots(n, out.shape[0])
        self.check_rows(rows, asked.shape[0], MAX_SCORED)
        if weights.shape[0] != rows.shape[0]:
            raise ValueError("one weight a resource")
        if n == 0:
            return
        cdef amount* answer = &out[0]
        cdef Py_ssize_t i, j, resources = rows.shape[0]
        cdef amount total, weight, capacity, requested
        cdef const amount* room[MAX_SCORED]
        cdef const amount* used[MAX_SCORED]
        for j in range(resources):
            room[j], used[j] = self.room[rows[j]], self.used[rows[j]]
        with nogil:
            for i in range(n):
                total = weight = 0
                for j in range(resources):
                    capacity = room[j][i]
                    if capacity == 0:
                        continue
                    requested = used[j][i] + asked[j]
                    total += weights[j] * (most_allocated_share(requested, capacity) if most else least_allocated_share(requested, capacity))
                    weight += weights[j]
                answer[i] = total // weight if weight else 0

    def score_ratio(self, const int32_t[::1] rows, const amount[::1] asked, const amount[::1] weights,
                    const amount[::1] utilization, const amount[::1] scores, amount[::1] out, Py_ssize_t n):
        """RequestedToCapacityRatio: only resources whose own score is above 0 count, rounded half away from zero."""
        self.check_slots(n, out.shape[0])
        self.check_rows(rows, asked.shape[0], MAX_SCORED)
        if weights.shape[0] != rows.shape[0] or utilization.shape[0] != scores.shape[0] or scores.shape[0] == 0:
            raise ValueError("one weight a resource, one score a utilization, at least one point")
        if n == 0:
            return
        cdef amount* answer = &out[0]
        cdef Py_ssize_t i, j, resources = rows.shape[0], points = scores.shape[0]
        cdef amount total, weight, capacity, requested, one
        cdef const amount* room
        cdef const amount* used
        with nogil:
            for i in range(n):
                total = weight = 0
                for j in range(resources):
                    room, used = self.room[rows[j]], self.used[rows[j]]
                    capacity = room[i]
                    if capacity == 0:
                        continue
                    requested = used[i] + asked[j]
                    one = broken_linear(&utilization[0], &scores[0], points, 100 if requested > capacity else requested * 100 // capacity)
                    if one > 0:
                        total += weights[j] * one
                        weight += weights[j]
                answer[i] = <amount>c_round(<double>total / <double>weight) if weight else 0

    def score_balanced(self, const int32_t[::1] rows, const amount[::1] asked, const flag[::1] bypassed, amount[::1] out, Py_ssize_t n):
        """NodeResourcesBalancedAllocation: 50 + (50 + balance with the pod - balance without it) / 2.

        `bypassed[j]` leaves a resource out on every node (a scalar that the pod does not ask for).
        """
        self.check_slots(n, out.shape[0])
        self.check_rows(rows, asked.shape[0], MAX_SCORED)
        if bypassed.shape[0] != rows.shape[0]:
            raise ValueError("one bypass flag a resource")
        if n == 0:
            return
        cdef amount* answer = &out[0]
        cdef Py_ssize_t i, j, count, resources = rows.shape[0]
        cdef double after[MAX_SCORED]
        cdef double before[MAX_SCORED]
        cdef amount capacity, used, balance_with, balance_without
        with nogil:
            for i in range(n):
                count = 0
                for j in range(resources):
                    capacity = self.room[rows[j]][i]
                    if bypassed[j] or capacity == 0:
                        continue
                    used = self.used[rows[j]][i]
                    after[count] = share(used + asked[j], capacity)
                    before[count] = share(used, capacity)
                    count += 1
                balance_with = <amount>((1.0 - spread_of(after, count)) * 100.0)
                balance_without = <amount>((1.0 - spread_of(before, count)) * 100.0)
                answer[i] = 50 + (50 + balance_with - balance_without) // 2
