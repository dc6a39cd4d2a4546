"""Events of the Kubernetes API, before they are written: which are created, counted up or dropped.

Reading order: `event_correlation` is client-go's correlator.
May import: `api`, `base`.
"""
