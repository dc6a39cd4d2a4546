"""Names the signals that end `podscaler up` and `podscaler demo`, which stop what they started first."""

import signal


def handled() -> list[signal.Signals]:
    """SIGINT, SIGTERM and SIGHUP, the last (the terminal was closed) unless it is ignored, as under nohup."""
    is_hang_up_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if is_hang_up_ignored else [signal.SIGHUP])]
