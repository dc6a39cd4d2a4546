"""Recordings of syncs: what each observed, decided and wrote, as lines of a file.

Reading order: `observed_sync` is what one sync read; `recording` the interface; `file_recording` writes.
May import: `controller.informers` and below.
"""
