"""Names the signals at which `podscaler.cli.up.up` and `podscaler.cli.demo` stop what they started, and end."""

import signal


def handled() -> list[signal.Signals]:
    """SIGINT, SIGTERM and SIGHUP (the terminal was closed); SIGHUP is left out if it is ignored, as under nohup."""
    is_hang_up_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([] if is_hang_up_ignored else [signal.SIGHUP])]
