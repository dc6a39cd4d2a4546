"""`podscaler controller` and the groups of flags that commands share.

Reading order: `settings` has the controller's flags; `controller` is the command.
May import: everything below `cli`.
"""
