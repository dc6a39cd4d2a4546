"""The signals that ask a command to end, for the commands that have something to put away first.

Called by `up` and `demo`.
"""

import signal


def wanted() -> list[signal.Signals]:
    """SIGINT, SIGTERM and SIGHUP, the last (the terminal was closed) unless it is ignored, as under nohup."""
    is_hang_up_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if is_hang_up_ignored else [signal.SIGHUP])]
