"""Kubernetes objects as a scheduler needs them; no I/O.

The Structs in `pod`, `node` and `objects` hold the fields that some decision depends on, under Kubernetes' names in
snake case; everything else is dropped while decoding. `quantity`, `selectors` and `requests` are the rules that
Kubernetes shares between its components.
"""
