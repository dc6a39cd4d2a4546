"""The records of workloads: Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job, CronJob.

Reading order: `workload_spec` has their common validation and columns; each other module has the records of one or two
kinds.
May import: `api.kinds.pods` and below.
"""
