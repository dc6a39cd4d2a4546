"""The controllers of batch/v1: Jobs run pods to completion, finished Jobs expire, CronJobs create Jobs.

Entry points: `jobs.Jobs`, `finished_jobs.FinishedJobs` and `cronjobs.CronJobs`, which `controller_manager` runs.
Reading order:
`completion_indexes`, `job_pods`, `failure_policy`, `job_view`, `job_verdict`, `pod_templates`, `pod_tracking`, `jobs`.
May import: `apps.ranking` and `framework`.
"""
