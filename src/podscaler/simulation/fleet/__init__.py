"""Compares candidates for all autoscalers of a fleet, on processes that Dask starts or on a Dask cluster.

Entry point: `running.run`. Reading order: `autoscalers` (the load of one autoscaler, and the rows about it),
`judging` (rows of candidates), `synthetic` (a made fleet), `splitting` and `partitions` (recordings, a part at a time),
`results` (Parquet files), `summary`, `cluster` (Dask), `running`.
May import: `simulation.evaluation`, `simulation.batch`, `simulation.model`, `core`, `api`, `base`; numpy, polars and
distributed (the extra `simulation`).
"""
