"""Simulates autoscalers in virtual time, with the decision that a controller makes (`podscaler.core.decide`).

Entry point: `engine.simulate`, which yields one `SimulatedSync` for each sync of each autoscaler of a
`model.scenario.SimulationScenario`. Reading order: `model` (inputs and results), `world` (load, pods, metrics, nodes),
`engine`; then `files` (scenario files), `batch` (in machine code), `evaluation`, `search`, `fleet`, `report`.
May import: `core`, `explain`, `api`, `base`.

Invariants: a scenario and its seed determine every result. World time is in whole milliseconds since the start, CPU in
millionths of a core, memory in bytes: integers, so that other engines can compute the same values.
"""
