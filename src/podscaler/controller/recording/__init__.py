"""Recordings of syncs: what one observed and did, as lines of a file.

Reading order: `observed` is one observation; `recording` the protocol; `file_recording` writes.
May import: `controller.informers` and below.
"""
