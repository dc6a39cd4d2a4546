"""Judges how well autoscalers follow a demand: what was needed, what each candidate supplied, and the difference.

Entry point: `comparison.compare`. Reading order: `elasticity` (the metrics), `demand` (the needed pods), `surges`,
`candidates` (scalers that are no HPA: fixed, hindsight), `knative`, `comparison`, `verdict`, `recording_scenario` and
`recorded_containers` (recordings as scenarios), `monitoring_scenario` (series of Prometheus as a scenario) and
`demand_reconstruction` (measured usage as a demand).
May import: `simulation.engine`, `simulation.scaler_runs`, `simulation.world`, `simulation.model`, `core`, `api`,
`base`.
"""
