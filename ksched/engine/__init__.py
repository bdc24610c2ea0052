"""The scheduler itself.

    scheduler   its life: start, turn after turn, a clean stop
    pipeline    a pod's whole way, put together, without loop and network
    sources     what is listed and watched
    feed        what the API server tells: changes of the cluster, moves in the queue
    cycle       one pod's way to a node; nothing waits there
    binding     what has to wait: permission, preparation, the binding
    failure     a pod that found no node: event, condition, back to the queue
    outlet      what is written, as requests of the API client
    handle      what plugins may use
    waiting     pods that a plugin holds back
    garbage     when Python's garbage collector may run

Only `sources` and `outlet` speak to the API client; only `feed` changes the cluster and moves pods because of what the
API server told.
"""
