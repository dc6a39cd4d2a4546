"""Workload kinds: Deployment, ReplicaSet, StatefulSet, DaemonSet, ControllerRevision, Job.

Reading order: `workload_spec` has what they share.
May import: `api.kinds.pods` and below.
"""
