"""Custom and external metrics whose values ConfigMaps state, for seeing every type of metric at work on one machine.

`apis.MetricValues` is what the wiring of `up` makes: it follows the ConfigMaps (`config_maps`, `parsing`, `fields`),
keeps their series (`index`, `series`, `schedule`), finds what a query asks for (`lookup`) and shapes the answer
(`answers`). docs/metrics.md is the user's side of it.
"""
