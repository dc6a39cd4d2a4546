"""Leader election by Leases, as client-go's, with write leases that fence writes.

Reading order: `elector` is one lease; `lease_holder` what its holder does; `leadership` the command's view; `fence`
refuses late writes.
May import: `kube`, `api`, `base`.
"""
