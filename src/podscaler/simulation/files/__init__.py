"""Reads scenario files: autoscalers and workloads, with loads from steps, shapes, CSV, Parquet and Prometheus.

Entry point: `scenario_file.read`, whose result has the `SimulationScenario` and the expectations of its result.
Reading order: `file_fields` (values with file and line), `traces` (points of files), `trace_series` (points become a
series), `load_shapes`, `loads`, `documents`, `pod_models`, `workloads`, `scenario_parts`, `scenario_file`.
May import: `simulation.model`, `simulation.metric_feeds`, `core`, `api`, `base`. Parquet needs polars, which is
imported when a file is read.

Invariants: a field that is not known, a value without its unit, and a point that is missing are errors; nothing becomes
zero that the file does not state.
"""
