"""The images `agnhost` and `resource-consumer`: chooses the program by the first argument and runs it.

It runs as the process of a container: `agnhost.py SUBCOMMAND [FLAGS]`. Python is started without site-packages, so the
package's own folder is added to the search path, from which the subcommand's module is imported.

Source: test/images/agnhost of Kubernetes v1.37: names of subcommands; `pause` is the default.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

PACKAGE: Final = "podscaler.controlplane.kubelet.programs"
SUBCOMMANDS: Final = {
    "crd-conversion-webhook": ("webhooks", "main"),
    "entrypoint-tester": ("agnhost", "print_arguments"),
    "external-metrics": ("external_metrics", "main"),
    "guestbook": ("guestbook", "main"),
    "liveness": ("serve_hostname", "liveness_main"),
    "logs-generator": ("logs_generator", "main"),
    "mounttest": ("mounttest", "main"),
    "netexec": ("netexec", "main"),
    "resource-consumer-controller": ("resource_consumer_controller", "main"),
    "serve-hostname": ("serve_hostname", "main"),
    "test-service-account-issuer-discovery": ("issuer_discovery", "main"),
    "test-webserver": ("serve_hostname", "web_server_main"),
    "webhook": ("webhooks", "main"),
}
"""The name of a subcommand -> its module and the function that takes its flags and returns the exit status."""
CONSUMER: Final = "resource-consumer"
PAUSE_STATUS: Final = {signal.SIGINT: 1, signal.SIGTERM: 2}


def pause() -> int:
    """Wait for SIGINT or SIGTERM; returns 1 or 2."""
    signals = set(PAUSE_STATUS)
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    print("Paused\nSignals registered", flush=True)
    received = signal.Signals(signal.sigwait(signals))
    words = {signal.SIGINT: "interrupt", signal.SIGTERM: "terminated"}
    message = f'exiting because of signal "{words[received]}"\n'
    path = os.environ.get("TERMINATION_MESSAGE_PATH")
    if path:
        with suppress(OSError):
            Path(path).write_text(message, encoding="utf-8")
    print(message, end="", flush=True)
    return PAUSE_STATUS[received]


def print_arguments(args: Sequence[str]) -> int:
    """Print the command line as Go prints a list; returns 0."""
    print(f"[{' '.join(('/agnhost', 'entrypoint-tester', *args))}]", flush=True)
    return 0


def run(command: Sequence[str], args: Sequence[str]) -> int:
    """Run the subcommand `args[0]`; returns the exit status, 1 for an unknown one.

    Args:
        command: runs this program in a process of its own.
    """
    name = args[0] if args else "pause"
    if name == "pause":
        return pause()
    if name == CONSUMER:
        module = import_module(f"{PACKAGE}.resource_consumer")
        return int(module.main(args[1:], [*command, CONSUMER]))
    if name not in SUBCOMMANDS:
        print(f'Error: unknown command "{name}" for "app": podscaler has {", ".join(known())}', file=sys.stderr)
        return 1
    module_name, function_name = SUBCOMMANDS[name]
    function: Callable[[Sequence[str]], int] = getattr(import_module(f"{PACKAGE}.{module_name}"), function_name)
    return function(args[1:])


def known() -> list[str]:
    """The names of all subcommands."""
    return sorted([*SUBCOMMANDS, CONSUMER, "pause"])


if __name__ == "__main__":
    file = Path(__file__).resolve()
    sys.path.insert(0, str(file.parents[len(PACKAGE.split("."))]))
    sys.exit(run((sys.executable, "-I", "-S", str(file)), sys.argv[1:]))
