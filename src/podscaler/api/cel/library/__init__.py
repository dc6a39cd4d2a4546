"""The functions that expressions can call.

Entry point: `environment.FUNCTIONS`, all functions by name.
Reading order: `functions` (signatures), `environment`, then the libraries: `standard`, `strings`, `lists`, ...
May import: `api.cel.values` and below.
"""
