"""Workload kinds: Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, ControllerRevision, Job.

Reading order: `workload_spec` has what they share; each other module has the records of one or two kinds.
May import: `api.kinds.pods` and below.
"""
