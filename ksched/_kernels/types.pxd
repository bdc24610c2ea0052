# C names that more than one section uses.

from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t

ctypedef int64_t amount     # milli-CPU, bytes, or a count
ctypedef uint8_t flag       # 0 or 1
ctypedef int32_t code       # what a filter says of a node: 0 keeps it
