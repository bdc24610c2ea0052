"""The only place that speaks HTTP to Kubernetes.

    kubeconfig   where the API server is, and how to prove who we are
    http1        HTTP/1.1 as bytes: heads out, answers in; no I/O
    connection   one connection: a request at a time, or a watch
    transport    a pool of keep-alive connections, one request at a time on each
    client       requests: credentials, rate, what may be tried again
    decode       bytes to objects; what is malformed is named, never fatal
    watch        list and watch: batches of changes, without gaps or repeats
    writes       binding, status patch, deletion; a lost answer is resolved by looking
    events       Event objects: aggregated, bounded, the first to be dropped

Everything runs on one event loop and calls back on it; nothing here knows what scheduling is.
"""
