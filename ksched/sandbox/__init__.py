"""An embedded Kubernetes API server, for machines that have no cluster.

It runs in its own process and speaks HTTP, so that the whole path of a client is real: kubectl, kube-scheduler and
ksched work against it unmodified. It keeps everything in memory (with a journal on request), defaults and changes
objects where a scheduler would notice, and can be told to misbehave.

`server.py` is the process, `http.py` the wire, `routes.py` what a request means, `store.py` the objects and their
verbs, `watches.py` who is told of changes; the rest are the rules that these apply.
"""
