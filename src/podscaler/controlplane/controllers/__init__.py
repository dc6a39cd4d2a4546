"""The controllers of the control plane; `controlplane.controller_manager` runs them.

Reading order: `framework` is what they are made of; then `apps`, `deployment`, `endpoints`, `gc`, `cluster`.
May import: `controlplane.auth` and below.
"""
