"""Scrapes the metrics that pods expose for Prometheus, and makes series of them (`metrics.custom` serves these).

Reading order: `scraper` is the entry point; `targets` selects the pods, `exposition` parses their responses, `counters`
computes rates; `service_discovery` lists the targets for a Prometheus.
May import: `controlplane.metrics.custom` and below.
"""
