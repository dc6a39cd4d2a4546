"""The functions that expressions can call.

Entry point: `library.FUNCTIONS`, all functions by name.
Reading order: `functions` (signatures), `library`, then the libraries: `standard`, `strings`, `lists`, ...
May import: `api.cel.values` and below.
"""
