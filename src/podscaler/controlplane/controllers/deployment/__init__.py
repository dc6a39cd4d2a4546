"""The Deployment controller: rollouts, progress, revisions.

Reading order: `deployment` is the controller; `deployment_planning` and `rollout` are pure.
May import: `controlplane.controllers.framework` and below.
"""
