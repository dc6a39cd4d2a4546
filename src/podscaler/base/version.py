"""The version of podscaler, the only place that says it besides pyproject.toml."""

__version__ = "0.1.0"
