"""Groups of flags: each module puts its flags on commands and turns their values into settings.

Reading order: `flags` has the types of flags; `settings` the flags of the controller.
May import: everything below `cli`.
"""
