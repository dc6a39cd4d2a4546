"""Stabilization windows, policies, bounds, cooldowns.

Reading order: `normalisation` puts them in order.
May import: `core.model` and below.
"""
