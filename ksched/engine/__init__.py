"""The scheduler itself.

scheduler   its life: start, turn after turn, a clean stop
feed        what the API server tells: changes of the cluster, moves in the queue
cycle       one pod's way to a node; nothing waits there
binding     what has to wait: permission, preparation, the binding
failure     a pod that found no node: event, condition, back to the queue
waiting     pods that a plugin holds back
garbage     when Python's garbage collector may run
"""
