"""`podscaler simulate`: runs a scenario file in virtual time, and prints what its autoscalers do.

Entry point: `simulate.command`. Reading order: `range_queries` (loads of Prometheus), `timeline`, `run_summary`,
`sync_output` (JSON, CSV, Parquet), `simulate`.
May import: everything below `cli`.
"""
