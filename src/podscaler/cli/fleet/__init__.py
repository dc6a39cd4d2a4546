"""The fleet mode of `podscaler backtest`: all autoscalers of recordings, or of a generated fleet, on Dask workers.

Entry point: `fleet_run.run`. Reading order: `fleet_flags` (the request), `fleet_output` (progress and summary),
`fleet_run`.
May import: everything below `cli`, and `cli.commands.replay`, which reads recordings.
"""
