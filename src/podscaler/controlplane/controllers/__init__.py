"""The controllers of the control plane; `controlplane.controller_manager` runs them.

Reading order: `framework` first (control loop and `Reconciler`); then `apps`, `deployment`, `endpoints`, `gc`,
`cluster` in any order, and `batch`.
May import: `controlplane.auth` and below.
"""
