"""The image `pause` (`kubelet.launching.images`): waits for SIGTERM or SIGINT, and exits."""

import signal


def main() -> None:
    """Wait for SIGTERM or SIGINT."""
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
