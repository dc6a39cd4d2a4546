"""Other controllers of autoscalers at work: standby, dry run, comparison of decisions.

Reading order: `standby` decides whether to write; `comparison` compares.
May import: `controller.recording` and below.
"""
