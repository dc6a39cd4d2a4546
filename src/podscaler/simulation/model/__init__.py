"""The inputs and results of a simulation as plain values.

Entry point: `scenario.SimulationScenario`. Reading order: `step_series`, `distributions`, `workloads`, `scenario`,
`results`, `expectations`, `resource_faults`. May import: `core`, `api`.
"""
