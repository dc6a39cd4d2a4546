"""Parses requests and builds responses for all handlers: paths, queries, bodies, negotiation, errors.

Reading order: `resource_request` has the arguments of every handler; `request_paths`, `query_options`, `request_bodies`
parse requests; `responses`, `response_encoder` and `object_responses` make responses. May import:
`controlplane.aggregator` and below.
"""
