"""The decision of an autoscaler as pure functions, one module for each stage.

Entry points: `decide.decide` for one sync, `settle` once its scale is written, `replay` for recordings.
Reading order: `decide` first; then `branch`, `combine`, `proposals`, the packages `calculation` and `limits`, `settle`;
`model` holds inputs, settings and the trace.
May import: `api`, `base`.
"""
