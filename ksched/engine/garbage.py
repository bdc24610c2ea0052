"""When Python's garbage collector may run.

Nearly everything the scheduler makes is freed by reference counting, but a collection walks all containers that are
alive, and with a large cluster in memory that is a pause of tens of milliseconds. So: none while the cluster is being
listed; then what has come to stay is frozen, out of the collector's sight; afterwards collections are rare, and made
where possible when no pod waits. The collector belongs to the process, so one scheduler at a time looks after it.
"""

from __future__ import annotations

import gc

YOUNG_OBJECTS = 200_000
"""So many more containers made than freed start a collection, whatever else is going on."""
IDLE_OBJECTS = 100_000
"""So many are worth a collection when there is nothing else to do."""


class Garbage:
    """Python's collector, held back while it would be in the way."""

    def __init__(self) -> None:
        self._before: tuple[tuple[int, int, int], bool] | None = None
        self._lists = 0

    def list_starts(self) -> None:
        """Much is about to be made that stays: collect nothing until the last list has ended."""
        if self._before is None:
            self._before = gc.get_threshold(), gc.isenabled()
        self._lists += 1
        gc.disable()

    def list_ends(self) -> None:
        """A list has ended. After the last one, what is alive stays: do not look at it again, and collect rarely."""
        self._lists -= 1
        if self._before is not None and not self._lists:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            gc.set_threshold(YOUNG_OBJECTS, 10, 10)
            gc.enable()

    def idle(self) -> None:
        """There is nothing to do: collect if it is worth it."""
        if self._before is not None and not self._lists and gc.get_count()[0] > IDLE_OBJECTS:
            gc.collect(1)

    def release(self) -> None:
        """Leave the collector as it was found."""
        if self._before is None:
            return
        (threshold, enabled), self._before = self._before, None
        gc.unfreeze()
        gc.set_threshold(*threshold)
        if enabled:
            gc.enable()
        else:
            gc.disable()
