"""The fleet mode of `podscaler backtest`: all autoscalers of recordings, or of a made fleet, on Dask workers.

Entry point: `fleet_run.run`. Reading order: `fleet_flags` (the request), `fleet_output` (progress and summary),
`fleet_run`.
"""
