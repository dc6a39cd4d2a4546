"""Custom metrics that pods expose to Prometheus: scraped, turned into rates, and served for pods and objects.

Reading order: `scraper` is the entry point; `targets` says which pods are scraped, `exposition` reads what they answer,
`counters` makes rates, `association` finds the pods behind Services, Deployments, Ingresses and namespaces;
`service_discovery` tells Prometheus what is scraped.
May import: `controlplane.metrics.custom` and below.
"""
