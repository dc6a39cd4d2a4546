"""Leader election by Leases, as client-go's, with write leases that fence writes, for one leader or for shards.

Reading order: `elector` is one lease; `lease_holder` has its callbacks; `leadership` and `sharding` are the elections;
`fence` blocks late writes.
May import: `events`, `kube`, `api`, `base`.
"""
