"""The simulated world around the decision: load, pods, nodes and the metrics pipeline, in virtual time.

Entry point: `workload.VirtualWorkload`. Reading order: `pods`, `load_serving`, `nodes`, `pod_replacement`, `sampling`,
`workload`.
May import: `simulation.model`, `core`, `api`.
"""
