"""The names of Services and pods, as DNS answers inside pods."""
