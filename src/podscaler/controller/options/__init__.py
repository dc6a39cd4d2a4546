"""The controller's settings, feature gates, kinds of autoscalers, and the identity of its installation.

Reading order: `settings`, then the others; `effective_settings` publishes them in the cluster.
May import: `controller.history`, `controller.leaderelection`, `kube`, `core`, `api`, `base`.
"""
