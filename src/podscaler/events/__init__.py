"""Events of the Kubernetes API, before they are written: which are created, counted up or dropped, and their fields.

Reading order: `event_correlation` is client-go's correlator; `event_object` builds the objects.
May import: `api`, `base`.
"""
