"""Settings of all tests: hypothesis takes the same examples each time, and as long as it needs on a busy machine."""

from hypothesis import settings

settings.register_profile("deterministic", deadline=None, derandomize=True)
settings.load_profile("deterministic")
