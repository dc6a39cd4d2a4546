"""The simulated world around the decision: load, pods, nodes and the metrics pipeline, in virtual time.

Entry point: `workload.VirtualWorkload`. Reading order: `pods`, `serving`, `nodes`, `replacement`, `sampling`,
`workload`.
May import: `simulation.model`, `core`, `api`.
"""
