"""Searches for the spec of an autoscaler that meets a goal on a load, and judges it on a later part of that load.

Entry point: `search.search`. Reading order: `scores` (what a candidate is measured by), `goals`, `space`, `folds`,
`scoring` (which evaluates candidates), `search`, `recommendation`.
May import: `simulation.batch`, `simulation.evaluation`, `simulation.engine`, `simulation.model`, `core`, `api`.
"""
