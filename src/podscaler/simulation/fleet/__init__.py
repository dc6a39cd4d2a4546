"""Compares candidates for all autoscalers of a fleet, on processes that Dask starts or on a Dask cluster.

Entry point: `partition_runs.run`. Reading order: `autoscalers` (the load of one autoscaler, and the rows about it),
`candidate_rows` (rows of candidates), `synthetic` (a made fleet), `splitting` and `recorded_partitions` (recordings, a
part at a time), `result_files` (Parquet), `summary`, `cluster` (Dask), `partition_runs`.
May import: `simulation.evaluation`, `simulation.batch`, `simulation.model`, `core`, `api`, `base`; numpy, polars and
distributed (the extra `simulation`).
"""
