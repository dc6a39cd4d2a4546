"""HTTP as the API server speaks it: paths, queries, bodies, negotiation, responses, errors.

Reading order: `resource_request` has the arguments of every handler; `paths`, `queries`, `bodies` parse requests;
`responses`, `response_encoder` and `rendering` make responses.
May import: `controlplane.aggregator` and below.
"""
