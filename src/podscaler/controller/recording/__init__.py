"""Recordings of syncs: what each observed, decided and wrote, as lines of a file.

Reading order: `observed_sync` is one observation; `recording` the interface; `file_recording` writes.
May import: `controller.informers` and below.
"""
