"""Serves custom, external and resource metrics from Prometheus to autoscalers (`podscaler adapter`).

Entry point: `assembly.new_adapter`.
May import: `metrics`, `kube`, `api`, `base`; `controlplane` and `controller` must not import it.
Reading order: `config`, `naming`, `providers`, `server`; `go_template` and `promql` are the languages of a rule.
"""
