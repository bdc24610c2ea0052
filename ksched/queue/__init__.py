"""Who is next: pods that wait, in the order in which they are tried, and what wakes those that did not fit.

    scheduling_queue   the queue itself: from where to where a pod moves, and when
    pools              the places a pod can be in
    events             what happens in a cluster, as the queue hears of it
    changes            which events an update of a pod or node amounts to
    registrations      which events could help a pod that a plugin turned down
    nominator          pods that wait for a node which has been promised to them
    backoff            how long a pod waits after it failed

Nothing here does I/O or reads a clock of its own. `engine.feed` is the only one that tells the queue of events.
"""
