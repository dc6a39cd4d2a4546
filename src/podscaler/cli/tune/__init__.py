"""`podscaler tune`: a better spec for an autoscaler, found on one part of a load and judged on a later one.

Reading order: `tune` is the command; `tune_output` prints.
May import: everything below `cli`, and `cli.backtest`, whose sources it shares.
"""
