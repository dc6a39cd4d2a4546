"""The controller's settings, feature gates, kinds of autoscalers, and the identity of its installation.

Reading order: `settings` is what flags set.
May import: `core`, `api`, `base`.
"""
