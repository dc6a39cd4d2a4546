"""HTTP as the API server speaks it: paths, queries, bodies, negotiation, responses, errors.

Reading order: `resource_request` is one request; `responses` and `rendering` what goes back.
May import: `controlplane.aggregator` and below.
"""
