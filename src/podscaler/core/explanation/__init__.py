"""Traces in words: from what a decision recorded to what a person needs to know about it.

`podscaler explain` calls `explained.explain`. Everything here is computed from the trace alone, never
from what led to it, so that an explanation cannot tell another story than the decision.
"""
