"""`podscaler backtest`: compares candidates for an autoscaler on a load that was recorded, monitored or described.

Entry point: `backtest.command`. Reading order: `load_sources` (where the load comes from), `candidate_options` (what is
compared), `comparison_output` (tables and data), `backtest`.
May import: everything below `cli`, and of `cli` `commands.replay`, `fleet` and `simulate`.
"""
