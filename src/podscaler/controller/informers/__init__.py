"""Informers of autoscalers and pods, and what is read from them.

Reading order: `observed_objects` turns objects into facts; `autoscaler_informer` follows both kinds.
May import: `controller.history` and below.
"""
