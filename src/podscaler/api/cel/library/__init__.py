"""The functions that CEL expressions can call.

Entry point: `environment.FUNCTIONS`, all functions by name. A new function: add its signature to a library's table.
Reading order: `functions` (signatures), `environment`, then the libraries: `standard`, `strings`, `lists`, ...
May import: `api.cel.values` and below.
"""
