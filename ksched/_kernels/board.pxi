# board.pxi: one pod shape's verdicts and totals over all nodes, kept up to date instead of computed anew.
#
# A rule answers for one slot. The board applies its rules to every slot once, and afterwards only to the slots that the
# journal names. Totals stand in a tree with 64 children a node that knows the best total below and how many have it, so
# the best node, and each of several equally good ones with the same chance, is found without a pass.
#
# ksched/framework/boards.py decides what a board is made of and when it is thrown away.

cdef extern from *:
    """
    #define ksched_prefetch(address) __builtin_prefetch((address), 1)
    """
    void prefetch "ksched_prefetch"(const void* address) noexcept nogil

cdef enum:
    MAX_RULES = 32
    AHEAD = 12
    FANOUT = 64
    MAX_LEVELS = 6
    NOT_FEASIBLE = -1


# -- the journal


@cython.final
cdef class Journal:
    """What changed at which slot, in order: a ring of the last `size` entries, numbered from 0 for ever.

    A kind is a small number; `PODS` (0) is a change of what the pods of a node ask for, `TOUCHED` (1) of anything else
    about its pods, `NODE` (2) of the node's own attributes. `head` is the number of the next entry, `nodes` how many
    were of kind 2 or more.
    """

    cdef int32_t* ring
    cdef readonly Py_ssize_t size
    cdef readonly int64_t head
    cdef readonly int64_t nodes

    def __cinit__(self, Py_ssize_t size):
        if size < 1 or size & (size - 1):
            raise ValueError(f"the size must be a power of two, got {size}")
        self.ring = <int32_t*>malloc(size * sizeof(int32_t))
        if self.ring == NULL:
            raise MemoryError
        self.size = size
        self.head = 0
        self.nodes = 0

    def __dealloc__(self):
        free(self.ring)

    def note(self, Py_ssize_t slot, int kind):
        """Append an entry."""
        if slot < 0 or slot >= 1 << 29 or kind < 0 or kind > 3:
            raise ValueError(f"slot {slot} or kind {kind} out of range")
        self.ring[self.head & (self.size - 1)] = <int32_t>(slot << 2 | kind)
        self.head += 1
        self.nodes += kind >= 2


# -- rules


cdef class FilterRule:
    """One filter's word on one slot: 0 keeps it."""

    cdef code verdict(self, Py_ssize_t i) noexcept nogil:
        return 0


@cython.final
cdef class ColumnFilter(FilterRule):
    """A filter whose answers were computed beforehand."""

    cdef const code* column
    cdef object owner

    def __cinit__(self, const code[::1] column):
        self.column = &column[0]
        self.owner = column

    cdef code verdict(self, Py_ssize_t i) noexcept nogil:
        return self.column[i]


@cython.final
cdef class FitFilter(FilterRule):
    """NodeResourcesFit's filter; see `Resources.fit` for the code's bits."""

    cdef Resources resources
    cdef const amount* pod_count
    cdef const amount* allowed_pods
    cdef Py_ssize_t asks
    cdef const amount* room[MAX_ASKED]
    cdef const amount* used[MAX_ASKED]
    cdef amount want[MAX_ASKED]

    def __cinit__(self, Resources resources, const int32_t[::1] rows, const amount[::1] asked):
        resources.check_rows(rows, asked.shape[0], MAX_ASKED)
        self.resources = resources
        self.pod_count, self.allowed_pods = resources.pod_count, resources.allowed_pods
        self.asks = rows.shape[0]
        cdef Py_ssize_t j
        for j in range(self.asks):
            self.room[j], self.used[j], self.want[j] = resources.room[rows[j]], resources.used[rows[j]], asked[j]

    cdef code verdict(self, Py_ssize_t i) noexcept nogil:
        cdef code answer = TOO_MANY_PODS if self.pod_count[i] + 1 > self.allowed_pods[i] else 0
        cdef Py_ssize_t j
        for j in range(self.asks):
            if self.want[j] > 0 and self.want[j] > self.room[j][i] - self.used[j][i]:
                answer |= <code>1 << <code>(j + 1)
                if self.want[j] > self.room[j][i]:
                    answer |= <code>1 << UNRESOLVABLE_BIT
        return answer


cdef class ScoreRule:
    """One score plugin's raw score of one slot."""

    cdef amount raw(self, Py_ssize_t i) noexcept nogil:
        return 0


@cython.final
cdef class ColumnScore(ScoreRule):
    """A score that was computed beforehand."""

    cdef const int32_t* column
    cdef object owner

    def __cinit__(self, const int32_t[::1] column):
        self.column = &column[0]
        self.owner = column

    cdef amount raw(self, Py_ssize_t i) noexcept nogil:
        return self.column[i]


@cython.final
cdef class ZeroScore(ScoreRule):
    """A raw score of 0 everywhere, which normalisation may still turn into 100; costs no column."""


cdef class ResourceScore(ScoreRule):
    """The common part of scores over resources: what is asked of which rows."""

    cdef Resources resources
    cdef Py_ssize_t count
    cdef const amount* room[MAX_SCORED]
    cdef const amount* used[MAX_SCORED]
    cdef amount asked[MAX_SCORED]
    cdef amount weight[MAX_SCORED]

    def __cinit__(self, Resources resources, const int32_t[::1] rows, const amount[::1] asked, const amount[::1] weights, *rest):
        resources.check_rows(rows, asked.shape[0], MAX_SCORED)
        if weights.shape[0] != rows.shape[0]:
            raise ValueError("one weight a resource")
        self.resources = resources
        self.count = rows.shape[0]
        cdef Py_ssize_t j
        for j in range(self.count):
            self.room[j], self.used[j] = resources.room[rows[j]], resources.used[rows[j]]
            self.asked[j], self.weight[j] = asked[j], weights[j]


@cython.final
cdef class LeastAllocatedScore(ResourceScore):
    """LeastAllocated, see `Resources.score_least`."""

    cdef amount raw(self, Py_ssize_t i) noexcept nogil:
        cdef amount total = 0, weight = 0, capacity
        cdef Py_ssize_t j
        for j in range(self.count):
            capacity = self.room[j][i]
            if capacity != 0:
                total += self.weight[j] * least_allocated_share(self.used[j][i] + self.asked[j], capacity)
                weight += self.weight[j]
        return total // weight if weight else 0


@cython.final
cdef class MostAllocatedScore(ResourceScore):
    """MostAllocated, see `Resources.score_most`."""

    cdef amount raw(self, Py_ssize_t i) noexcept nogil:
        cdef amount total = 0, weight = 0, capacity
        cdef Py_ssize_t j
        for j in range(self.count):
            capacity = self.room[j][i]
            if capacity != 0:
                total += self.weight[j] * most_allocated_share(self.used[j][i] + self.asked[j], capacity)
                weight += self.weight[j]
        return total // weight if weight else 0


@cython.final
cdef class RatioScore(ResourceScore):
    """RequestedToCapacityRatio, see `Resources.score_ratio`."""

    cdef const amount* utilization
    cdef const amount* scores
    cdef Py_ssize_t points
    cdef tuple owners

    def __cinit__(self, Resources resources, const int32_t[::1] rows, const amount[::1] asked, const amount[::1] weights,
                  const amount[::1] utilization, const amount[::1] scores):
        if utilization.shape[0] != scores.shape[0] or scores.shape[0] == 0:
            raise ValueError("one score a utilization, at least one point")
        self.utilization, self.scores, self.points = &utilization[0], &scores[0], scores.shape[0]
        self.owners = (utilization, scores)

    cdef amount raw(self, Py_ssize_t i) noexcept nogil:
        cdef amount total = 0, weight = 0, capacity, requested, one
        cdef Py_ssize_t j
        for j in range(self.count):
            capacity = self.room[j][i]
            if capacity == 0:
                continue
            requested = self.used[j][i] + self.asked[j]
            one = broken_linear(self.utilization, self.scores, self.points, 100 if requested > capacity else requested * 100 // capacity)
            if one > 0:
                total += self.weight[j] * one
                weight += self.weight[j]
        return <amount>c_round(<double>total / <double>weight) if weight else 0


@cython.final
cdef class BalancedScore(ResourceScore):
    """NodeResourcesBalancedAllocation, see `Resources.score_balanced`; a weight of 0 bypasses the resource."""

    cdef amount raw(self, Py_ssize_t i) noexcept nogil:
        cdef double after[MAX_SCORED]
        cdef double before[MAX_SCORED]
        cdef amount capacity, used, balance_with, balance_without
        cdef Py_ssize_t j, count = 0
        for j in range(self.count):
            capacity = self.room[j][i]
            if self.weight[j] == 0 or capacity == 0:
                continue
            used = self.used[j][i]
            after[count] = share(used + self.asked[j], capacity)
            before[count] = share(used, capacity)
            count += 1
        balance_with = <amount>((1.0 - spread_of(after, count)) * 100.0)
        balance_without = <amount>((1.0 - spread_of(before, count)) * 100.0)
        return 50 + (50 + balance_with - balance_without) // 2


# -- the board


@cython.final
cdef class Board:
    """Verdicts and totals of one pod shape. `filters` is [(plugin number, FilterRule)], `scores` [(ScoreRule, weight,
    normalization)].

    Filters are applied in order and the first word counts. A rule with a normalization must depend on nothing but what
    `refresh` is told of with `attributes` set.
    """

    cdef list keep
    cdef Py_ssize_t filter_count
    cdef Py_ssize_t score_count
    cdef void* filters[MAX_RULES]
    cdef code numbers[MAX_RULES]
    cdef void* scores[MAX_RULES]
    cdef amount weights[MAX_RULES]
    cdef int normalizations[MAX_RULES]
    cdef amount highest[MAX_RULES]
    cdef Py_ssize_t at_highest[MAX_RULES]
    cdef const flag* present
    cdef code* verdict_column
    cdef int32_t* totals
    cdef int32_t* best_below[MAX_LEVELS]
    cdef int32_t* ties_below[MAX_LEVELS]
    cdef Py_ssize_t widths[MAX_LEVELS]
    cdef int levels
    cdef flag* stale
    cdef int32_t* stale_list
    cdef Py_ssize_t stale_count
    cdef bint built
    cdef readonly Py_ssize_t size
    cdef readonly Py_ssize_t feasible
    cdef readonly bint out_of_range
    cdef readonly int64_t position
    cdef readonly Py_ssize_t nbytes

    def __cinit__(self, const flag[::1] present, Py_ssize_t size, list filters, list scores):
        if size < 1 or present.shape[0] < size:
            raise ValueError(f"{size} slots asked for, {present.shape[0]} given")
        if len(filters) > MAX_RULES or len(scores) > MAX_RULES:
            raise ValueError(f"at most {MAX_RULES} rules of a kind")
        self.keep = [present, filters, scores]
        self.present = &present[0]
        self.size = size
        self.filter_count = len(filters)
        self.score_count = len(scores)
        cdef Py_ssize_t j
        for j in range(self.filter_count):
            number, filter_rule = filters[j]
            if not isinstance(filter_rule, FilterRule) or not 0 <= number <= MOST_PLUGINS:
                raise TypeError(f"expected (plugin number, FilterRule), got {filters[j]!r}")
            self.numbers[j] = <code>(<int>number << PLUGIN_SHIFT)
            self.filters[j] = <void*>filter_rule
        for j in range(self.score_count):
            score_rule, weight, normalization = scores[j]
            if not isinstance(score_rule, ScoreRule) or not 0 <= normalization <= NORMALIZE_REVERSED_MAX:
                raise TypeError(f"expected (ScoreRule, weight, normalization), got {scores[j]!r}")
            self.scores[j] = <void*>score_rule
            self.weights[j] = weight
            self.normalizations[j] = normalization
        self.verdict_column = <code*>malloc(size * sizeof(code))
        self.totals = <int32_t*>malloc(size * sizeof(int32_t))
        self.nbytes = size * (sizeof(code) + sizeof(int32_t))
        cdef Py_ssize_t blocks = (size + FANOUT - 1) // FANOUT
        self.stale = <flag*>calloc(blocks, sizeof(flag))
        self.stale_list = <int32_t*>malloc(blocks * sizeof(int32_t))
        if self.verdict_column == NULL or self.totals == NULL or self.stale == NULL or self.stale_list == NULL:
            raise MemoryError
        cdef Py_ssize_t width = size
        while width > 1 or self.levels == 0:
            width = (width + FANOUT - 1) // FANOUT
            if self.levels == MAX_LEVELS:
                raise ValueError(f"too many slots: {size}")
            self.best_below[self.levels] = <int32_t*>malloc(width * sizeof(int32_t))
            self.ties_below[self.levels] = <int32_t*>malloc(width * sizeof(int32_t))
            if self.best_below[self.levels] == NULL or self.ties_below[self.levels] == NULL:
                raise MemoryError
            self.nbytes += 2 * width * sizeof(int32_t)
            self.widths[self.levels] = width
            self.levels += 1

    def __dealloc__(self):
        cdef int level
        free(self.verdict_column)
        free(self.totals)
        free(self.stale)
        free(self.stale_list)
        for level in range(MAX_LEVELS):
            free(self.best_below[level])
            free(self.ties_below[level])

    def build(self, Journal journal):
        """Apply every rule to every slot; up to date with the journal afterwards."""
        cdef Py_ssize_t i
        with nogil:
            self.feasible = 0
            for i in range(self.size):
                self.verdict_column[i] = self.judge(i)
                self.feasible += self.verdict_column[i] == 0
            self.weigh_all()
        self.position = journal.head
        self.built = True

    def behind(self, Journal journal):
        """How many entries the board has to read, or -1 if the ring has gone past them."""
        cdef int64_t entries = journal.head - self.position
        return -1 if entries > journal.size else entries

    def dirty(self, Journal journal, Py_ssize_t from_kind):
        """The slots with an entry of at least `from_kind` since the board was last up to date, each once."""
        cdef int64_t at
        cdef int32_t entry
        found = set()
        for at in range(self.position, journal.head):
            entry = journal.ring[at & (journal.size - 1)]
            if entry & 3 >= from_kind:
                found.add(entry >> 2)
        return found

    def replay(self, Journal journal, int kinds):
        """Read the journal and judge anew each slot named by an entry whose kind is in the bit set `kinds`.

        Returns how many entries that were. What static rules say must not have changed; see `restate`.
        """
        if not self.built or journal.head - self.position > journal.size:
            raise ValueError("the board must be built first")
        cdef int64_t at
        cdef int32_t entry, slot, ahead
        cdef bint extremes_moved = False
        cdef Py_ssize_t judged = 0
        with nogil:
            for at in range(self.position, journal.head):
                entry = journal.ring[at & (journal.size - 1)]
                slot = entry >> 2
                if at + AHEAD < journal.head:
                    # A board that others have had their turn before is not in the cache any more.
                    ahead = journal.ring[(at + AHEAD) & (journal.size - 1)] >> 2
                    if ahead < self.size:
                        prefetch(&self.verdict_column[ahead])
                        prefetch(&self.totals[ahead])
                if kinds >> (entry & 3) & 1 and slot < self.size:
                    judged += 1
                    if self.judge_anew(slot):
                        extremes_moved = True
            if extremes_moved:
                self.weigh_all()
            else:
                self.lift_stale()
        self.position = journal.head
        return judged

    def restate(self, Journal journal, const int32_t[::1] slots):
        """Judge `slots` anew after what static rules say of them has changed; up to date with the journal afterwards."""
        cdef Py_ssize_t j
        self.check_slots(slots)
        with nogil:
            for j in range(slots.shape[0]):
                self.feasible -= self.verdict_column[slots[j]] == 0
                self.verdict_column[slots[j]] = self.judge(slots[j])
                self.feasible += self.verdict_column[slots[j]] == 0
            self.weigh_all()
        self.position = journal.head

    def hold_out(self, const int32_t[::1] slots):
        """Leave feasible slots out of the choice until `take_back`: nodes that others have a claim to."""
        cdef bint extremes_moved = False
        cdef Py_ssize_t j
        self.check_slots(slots)
        with nogil:
            for j in range(slots.shape[0]):
                if self.enter(slots[j], ABSENT_CODE):
                    extremes_moved = True
            if extremes_moved:
                self.weigh_all()
            else:
                self.lift_stale()

    def take_back(self, const int32_t[::1] slots):
        """Judge slots that were held out as before."""
        cdef bint extremes_moved = False
        cdef Py_ssize_t j
        self.check_slots(slots)
        with nogil:
            for j in range(slots.shape[0]):
                if self.judge_anew(slots[j]):
                    extremes_moved = True
            if extremes_moved:
                self.weigh_all()
            else:
                self.lift_stale()

    def is_feasible(self, Py_ssize_t slot):
        """Whether no filter turned the slot down."""
        if slot < 0 or slot >= self.size:
            raise IndexError(f"no slot {slot}")
        return self.verdict_column[slot] == 0

    def best(self):
        """The largest total among the feasible nodes, and how many have it: (total, count); count is 0 where none is
        feasible."""
        cdef int32_t top = self.best_below[self.levels - 1][0]
        if top == NOT_FEASIBLE:
            return 0, 0
        return top, self.ties_below[self.levels - 1][0]

    def nth_best(self, Py_ssize_t k):
        """The slot of the k-th (from 0, in slot order) of the nodes with the largest total."""
        cdef int32_t top = self.best_below[self.levels - 1][0]
        if top == NOT_FEASIBLE or k < 0 or k >= self.ties_below[self.levels - 1][0]:
            raise IndexError(f"no node {k} has the largest total")
        cdef Py_ssize_t at = 0, child, end
        cdef int level = self.levels - 2
        while level >= 0:
            end = min((at + 1) * FANOUT, self.widths[level])
            for child in range(at * FANOUT, end):
                if self.best_below[level][child] == top:
                    if k < self.ties_below[level][child]:
                        break
                    k -= self.ties_below[level][child]
            at = child
            level -= 1
        end = min((at + 1) * FANOUT, self.size)
        for child in range(at * FANOUT, end):
            if self.totals[child] == top:
                if k == 0:
                    return child
                k -= 1
        raise AssertionError("the tree and the totals disagree")

    def copy_verdicts(self, flag[::1] alive, code[::1] verdicts):
        """Write who is feasible and every verdict into columns of the caller's."""
        if alive.shape[0] < self.size or verdicts.shape[0] < self.size:
            raise ValueError(f"{self.size} slots do not fit")
        cdef Py_ssize_t i
        for i in range(self.size):
            verdicts[i] = self.verdict_column[i]
            alive[i] = self.verdict_column[i] == 0

    def copy_totals(self, amount[::1] totals):
        """Write the totals into a column of the caller's; -1 where a slot is not feasible."""
        if totals.shape[0] < self.size:
            raise ValueError(f"{self.size} slots do not fit")
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.size):
                totals[i] = self.totals[i]

    def extremes_hold(self, const flag[::1] alive):
        """Whether normalised scores are the same over the nodes that are alive, fewer than the board has as feasible."""
        if alive.shape[0] < self.size:
            raise ValueError(f"{self.size} slots asked for, {alive.shape[0]} given")
        cdef Py_ssize_t i, j
        for j in range(self.score_count):
            if self.normalizations[j] == NORMALIZE_NONE or self.highest[j] == 0:
                continue
            for i in range(self.size):
                if alive[i] and (<ScoreRule>self.scores[j]).raw(i) == self.highest[j]:
                    break
            else:
                return False
        return True

    def total(self, Py_ssize_t slot):
        """The total of a slot; -1 where it is not feasible."""
        if slot < 0 or slot >= self.size:
            raise IndexError(f"no slot {slot}")
        return self.totals[slot]

    cdef int check_slots(self, const int32_t[::1] slots) except -1:
        cdef Py_ssize_t j
        if not self.built:
            raise ValueError("the board must be built first")
        for j in range(slots.shape[0]):
            if slots[j] < 0 or slots[j] >= self.size:
                raise IndexError(f"no slot {slots[j]}")
        return 0

    # one slot

    cdef code judge(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t j
        cdef code word
        if not self.present[i]:
            return ABSENT_CODE
        for j in range(self.filter_count):
            word = (<FilterRule>self.filters[j]).verdict(i)
            if word:
                return self.numbers[j] | word
        return 0

    cdef bint judge_anew(self, Py_ssize_t i) noexcept nogil:
        """Verdict and total of a slot; whether an extreme of a normalised score moved, so that all totals are out of
        date."""
        return self.enter(i, self.judge(i))

    cdef bint enter(self, Py_ssize_t i, code verdict) noexcept nogil:
        """Give a slot a verdict, and the total that goes with it; whether an extreme moved."""
        cdef bint was = self.verdict_column[i] == 0, now = verdict == 0, moved = False
        cdef Py_ssize_t j
        cdef amount raw
        self.verdict_column[i] = verdict
        if was != now:
            self.feasible += 1 if now else -1
            for j in range(self.score_count):
                if self.normalizations[j] == NORMALIZE_NONE:
                    continue
                raw = (<ScoreRule>self.scores[j]).raw(i)
                if now:
                    if raw > self.highest[j]:
                        moved = True
                    elif raw == self.highest[j]:
                        self.at_highest[j] += 1
                elif raw == self.highest[j]:
                    self.at_highest[j] -= 1
                    if self.at_highest[j] == 0 and raw > 0:
                        moved = True
        if not was and not now:
            return moved
        self.totals[i] = self.weighed(i) if now else NOT_FEASIBLE
        if not self.stale[i // FANOUT]:
            self.stale[i // FANOUT] = 1
            self.stale_list[self.stale_count] = i // FANOUT
            self.stale_count += 1
        return moved

    cdef int32_t weighed(self, Py_ssize_t i) noexcept nogil:
        cdef amount total = 0, score
        cdef Py_ssize_t j
        for j in range(self.score_count):
            score = (<ScoreRule>self.scores[j]).raw(i)
            if self.normalizations[j] != NORMALIZE_NONE:
                if self.highest[j] != 0:
                    score = 100 * score // self.highest[j]
                    if self.normalizations[j] == NORMALIZE_REVERSED_MAX:
                        score = 100 - score
                elif self.normalizations[j] == NORMALIZE_REVERSED_MAX:
                    score = 100
            if score < 0 or score > 100:
                self.out_of_range = True
            total += score * self.weights[j]
        return <int32_t>total

    # all slots

    cdef void weigh_all(self) noexcept nogil:
        """The extremes over the feasible nodes, every total, and the whole tree."""
        cdef Py_ssize_t i, j
        cdef amount raw
        cdef int level
        self.out_of_range = False
        for j in range(self.score_count):
            self.highest[j] = 0
            self.at_highest[j] = 0
            if self.normalizations[j] == NORMALIZE_NONE:
                continue
            for i in range(self.size):
                if self.verdict_column[i] == 0:
                    raw = (<ScoreRule>self.scores[j]).raw(i)
                    if raw > self.highest[j]:
                        self.highest[j] = raw
                        self.at_highest[j] = 1
                    elif raw == self.highest[j]:
                        self.at_highest[j] += 1
        for i in range(self.size):
            self.totals[i] = self.weighed(i) if self.verdict_column[i] == 0 else NOT_FEASIBLE
        for level in range(self.levels):
            for i in range(self.widths[level]):
                self.sum_up(level, i)
        self.forget_stale()

    cdef void sum_up(self, int level, Py_ssize_t at) noexcept nogil:
        """The best and its ties of one node of the tree."""
        cdef Py_ssize_t child, end
        cdef int32_t top = NOT_FEASIBLE, ties = 0
        cdef const int32_t* values
        if level == 0:
            values = self.totals
            end = min((at + 1) * FANOUT, self.size)
            for child in range(at * FANOUT, end):
                if values[child] > top:
                    top = values[child]
            if top != NOT_FEASIBLE:
                for child in range(at * FANOUT, end):
                    ties += values[child] == top
        else:
            values = self.best_below[level - 1]
            end = min((at + 1) * FANOUT, self.widths[level - 1])
            for child in range(at * FANOUT, end):
                if values[child] > top:
                    top = values[child]
            if top != NOT_FEASIBLE:
                for child in range(at * FANOUT, end):
                    if values[child] == top:
                        ties += self.ties_below[level - 1][child]
        self.best_below[level][at] = top
        self.ties_below[level][at] = ties

    cdef void lift_stale(self) noexcept nogil:
        """Carry changed totals up the tree: each node of the lowest level once, however many totals below it changed."""
        cdef Py_ssize_t j, i
        cdef int level
        for j in range(self.stale_count):
            self.sum_up(0, self.stale_list[j])
        if self.stale_count < self.widths[1 if self.levels > 1 else 0]:
            for j in range(self.stale_count):
                i = self.stale_list[j]
                for level in range(1, self.levels):
                    i = i // FANOUT
                    self.sum_up(level, i)
        else:
            for level in range(1, self.levels):
                for i in range(self.widths[level]):
                    self.sum_up(level, i)
        self.forget_stale()

    cdef void forget_stale(self) noexcept nogil:
        cdef Py_ssize_t j
        for j in range(self.stale_count):
            self.stale[self.stale_list[j]] = 0
        self.stale_count = 0
