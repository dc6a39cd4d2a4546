"""The Deployment controller: rolling updates, progress deadline, revision history.

Entry point: `deployment.Deployments`.

Reading order: `deployment` is the controller; `deployment_planning` and `rollout` are pure.
May import: `controlplane.controllers.framework` and below.
"""
