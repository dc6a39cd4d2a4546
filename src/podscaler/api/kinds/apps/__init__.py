"""The records of workloads: Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, Job, CronJob.

Reading order: `workload_spec` has what they share; each other module has the records of one or two kinds.
May import: `api.kinds.pods` and below.
"""
