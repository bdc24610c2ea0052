"""What is true of the cluster: nodes, the pods on them, and what is assumed of pods whose binding is under way.

`cluster` is the one door for changes; `table` holds the same facts as columns for the kernels; `node_info` shows one
node as a plugin's per-node form reads it; `shapes` computes what matters of a pod once for all its copies.
"""
