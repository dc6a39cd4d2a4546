"""Workload controllers: what keeps Deployments and ReplicaSets at the pods that they ask for."""
