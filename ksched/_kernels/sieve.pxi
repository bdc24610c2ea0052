# sieve.pxi: which nodes are left, and why the others are not.
#
# A verdict is one int32 per node: 0 while the node is in, ABSENT where there is no node or PreFilter left it out,
# otherwise which plugin said what (plugin << 23 | code). ksched/framework/profile.py turns verdicts into words; nobody
# does so for nodes one by one.

cdef enum:
    PLUGIN_SHIFT = 23
    MOST_PLUGINS = 255

ABSENT = -1
CODE_BITS = PLUGIN_SHIFT


@cython.final
cdef class Sieve:
    """The filtering of one pod over all slots; one object serves every cycle.

    `alive` (uint8) and `verdicts` (int32) are columns that the caller owns and may read between calls.
    """

    cdef flag* alive
    cdef code* verdicts
    cdef Py_ssize_t capacity
    cdef tuple owners

    def __cinit__(self, flag[::1] alive, code[::1] verdicts):
        if alive.shape[0] != verdicts.shape[0] or alive.shape[0] == 0:
            raise ValueError("alive and verdicts must be columns of one length, at least 1")
        self.alive = &alive[0]
        self.verdicts = &verdicts[0]
        self.capacity = alive.shape[0]
        self.owners = (alive, verdicts)

    def start(self, const flag[::1] present, Py_ssize_t n):
        """Begin with every node that is present, and return how many they are."""
        cdef Py_ssize_t i, count = 0
        if n < 0 or n > self.capacity or present.shape[0] < n:
            raise ValueError(f"{n} slots asked for, {present.shape[0]} given, {self.capacity} reserved")
        with nogil:
            for i in range(n):
                self.alive[i] = present[i]
                self.verdicts[i] = 0 if present[i] else ABSENT_CODE
                count += present[i]
        return count

    def keep_only(self, const int32_t[::1] slots, Py_ssize_t n):
        """Leave out every node that is not among `slots` (PreFilterResult), and return how many are left."""
        cdef Py_ssize_t i, count = 0
        cdef int32_t slot
        if n < 0 or n > self.capacity:
            raise ValueError(f"{n} slots asked for, {self.capacity} reserved")
        for i in range(slots.shape[0]):
            if slots[i] < 0 or slots[i] >= n:
                raise IndexError(f"no slot {slots[i]}")
        with nogil:
            for i in range(n):
                if self.alive[i]:
                    self.alive[i] = 2
            for i in range(slots.shape[0]):
                slot = slots[i]
                if self.alive[slot] == 2:
                    self.alive[slot] = 1
                    count += 1
            for i in range(n):
                if self.alive[i] == 2:
                    self.alive[i] = 0
                    self.verdicts[i] = ABSENT_CODE
        return count

    def reject(self, const code[::1] codes, Py_ssize_t plugin, Py_ssize_t n):
        """Take out each node still in whose code is not 0, and return how many went."""
        if n < 0 or n > self.capacity or codes.shape[0] < n:
            raise ValueError(f"{n} slots asked for, {codes.shape[0]} codes given, {self.capacity} reserved")
        if plugin < 0 or plugin > MOST_PLUGINS:
            raise ValueError(f"plugin number {plugin} is not within 0..{MOST_PLUGINS}")
        cdef Py_ssize_t i, gone = 0
        cdef code base = <code>(plugin << PLUGIN_SHIFT)
        with nogil:
            for i in range(n):
                if self.alive[i] and codes[i]:
                    self.alive[i] = 0
                    self.verdicts[i] = base | codes[i]
                    gone += 1
        return gone

    def reject_small(self, const flag[::1] codes, Py_ssize_t plugin, Py_ssize_t n):
        """`reject` for codes that fit a byte, which is what plugins of the public API return."""
        if n < 0 or n > self.capacity or codes.shape[0] < n:
            raise ValueError(f"{n} slots asked for, {codes.shape[0]} codes given, {self.capacity} reserved")
        if plugin < 0 or plugin > MOST_PLUGINS:
            raise ValueError(f"plugin number {plugin} is not within 0..{MOST_PLUGINS}")
        cdef Py_ssize_t i, gone = 0
        cdef code base = <code>(plugin << PLUGIN_SHIFT)
        with nogil:
            for i in range(n):
                if self.alive[i] and codes[i]:
                    self.alive[i] = 0
                    self.verdicts[i] = base | <code>codes[i]
                    gone += 1
        return gone

    def overrule(self, const flag[::1] codes, Py_ssize_t plugin, Py_ssize_t n):
        """`reject_small` by a plugin that should have spoken before some that have: also where a later one said no.

        Returns how many nodes went that were still in.
        """
        if n < 0 or n > self.capacity or codes.shape[0] < n:
            raise ValueError(f"{n} slots asked for, {codes.shape[0]} codes given, {self.capacity} reserved")
        if plugin < 0 or plugin > MOST_PLUGINS:
            raise ValueError(f"plugin number {plugin} is not within 0..{MOST_PLUGINS}")
        cdef Py_ssize_t i, gone = 0
        cdef code base = <code>(plugin << PLUGIN_SHIFT)
        with nogil:
            for i in range(n):
                if codes[i] and (self.alive[i] or self.verdicts[i] >> PLUGIN_SHIFT > plugin):
                    gone += self.alive[i]
                    self.alive[i] = 0
                    self.verdicts[i] = base | <code>codes[i]
        return gone


cdef enum:
    ABSENT_CODE = -1
