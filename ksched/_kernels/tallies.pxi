# tallies.pxi: counts of pods per node and per topology domain that follow each pod as it is placed or taken off.
#
# A pod may be counted in many columns, and each of those in several ways per domain, so this is what placing a pod costs
# beside its resources. Which pods are counted where is decided in ksched/cache/counts.py and domains.py.


cdef class DomainTally:
    """The counts of a column per domain; how many domains have which count is in `having`."""

    cdef const code* domains
    cdef const flag* included
    cdef code* tally
    cdef Py_ssize_t slots
    cdef Py_ssize_t size
    cdef Py_ssize_t nowhere
    cdef int64_t as_of
    cdef Journal journal
    cdef readonly dict having
    cdef tuple owners

    def follow(
        self, const code[::1] domains, const flag[::1] included, code[::1] counts, dict having, Py_ssize_t absent,
        Py_ssize_t n, Journal journal not None
    ):
        """Keep `counts` up to date from now on, as long as no node changes; see `count_domains` for the rest."""
        if n < 0 or domains.shape[0] < n or included.shape[0] < n:
            raise ValueError(f"{n} slots asked for, {domains.shape[0]} and {included.shape[0]} given")
        if absent < 0 or absent >= counts.shape[0]:
            raise ValueError(f"{counts.shape[0]} domains given, and {absent} for none")
        self.domains = &domains[0]
        self.included = &included[0] if n else NULL
        self.tally = &counts[0]
        self.slots = n
        self.size = counts.shape[0]
        self.nowhere = absent
        self.having = having
        self.journal = journal
        self.as_of = journal.nodes
        self.owners = (domains, included, counts)

    @property
    def is_stale(self):
        """Whether nodes have changed since."""
        return self.journal is None or self.as_of != self.journal.nodes

    def add(self, Py_ssize_t slot, int change):
        """`change` more pods are on a slot."""
        self.note(slot, change)

    cdef void note(self, Py_ssize_t slot, int change) except *:
        cdef Py_ssize_t domain
        if self.journal is None or self.as_of != self.journal.nodes:
            return
        if slot < 0 or slot >= self.slots or not self.included[slot]:
            return
        domain = self.domains[slot]
        if domain < 0:
            domain = self.nowhere
        if domain >= self.size:
            raise IndexError(f"no domain {domain}")
        cdef code before = self.tally[domain]
        self.tally[domain] = before + change
        count_moves(self.having, before, before + change)


def move_count(dict having, before, after):
    """Note that one domain has another count."""
    count_moves(having, before, after)


cdef void count_moves(dict having, before, after) except *:
    left = having[before] - 1
    if left:
        having[before] = left
    else:
        del having[before]
    having[after] = having.get(after, 0) + 1


cdef class PodColumn:
    """The number of pods per slot. `total` is their sum, `version` grows with every change."""

    cdef code* counts
    cdef Py_ssize_t size
    cdef readonly int64_t total
    cdef readonly int64_t version
    cdef list tallies
    cdef object owner

    def count_in(self, code[::1] slots):
        """Keep the numbers in this column."""
        if slots.shape[0] == 0:
            raise ValueError("a column has at least one slot")
        self.counts = &slots[0]
        self.size = slots.shape[0]
        self.tallies = []
        self.owner = slots

    def tell(self, tallies):
        """Tell these of every change from now on, instead of those before."""
        self.tallies = [<DomainTally?>each for each in tallies]

    def add(self, Py_ssize_t slot, int change):
        """Note that `change` more pods are on a slot."""
        cdef DomainTally tally
        if slot < 0 or slot >= self.size:
            raise IndexError(f"no slot {slot}")
        self.counts[slot] += change
        self.total += change
        self.version += 1
        for tally in self.tallies:
            tally.note(slot, change)
