"""The nodes, pods, scrapes and requests that were recorded with the real metrics-server, and are replayed with ours."""

NODES = ("n1",)
PODS = {
    "steady": {"app": "web"},
    "restarted": {"app": "web"},
    "two": {"app": "db"},
    "growing": {},
    "idle": {},
    "fresh": {"app": "fresh"},
    "falling": {},
    "unmeasured": {},
    "late": {},
    "pending": {"app": "web"},
}
"""Labels by name, all in the namespace default."""

BASE_S = 1_767_225_600
GROUP = "/apis/metrics.k8s.io/v1beta1"
PATHS = (
    f"{GROUP}/nodes",
    f"{GROUP}/nodes/n1",
    f"{GROUP}/nodes/none",
    f"{GROUP}/nodes?labelSelector=node%3Dn1",
    f"{GROUP}/nodes?labelSelector=node%3Dn2",
    f"{GROUP}/pods",
    f"{GROUP}/namespaces/default/pods",
    f"{GROUP}/namespaces/default/pods?labelSelector=app%3Dweb",
    f"{GROUP}/namespaces/default/pods?labelSelector=app+in+%28db%2Cfresh%29",
    f"{GROUP}/namespaces/default/pods?fieldSelector=metadata.name%3Dsteady",
    f"{GROUP}/namespaces/other/pods",
    *(f"{GROUP}/namespaces/default/pods/{name}" for name in (*PODS, "none")),
)


def phase(pod: str) -> str:
    """The phase of a pod."""
    return "Pending" if pod == "pending" else "Running"


def _container(
    pod: str, name: str, cpu_s: float | None, memory: float | None, *, at_s: float, started_s: float
) -> list[str]:
    labels = f'{{container="{name}",namespace="default",pod="{pod}"}}'
    time = round((BASE_S + at_s) * 1000)
    lines = [f"container_start_time_seconds{labels} {BASE_S + started_s}"]
    if cpu_s is not None:
        lines.append(f"container_cpu_usage_seconds_total{labels} {cpu_s} {time}")
    if memory is not None:
        lines.append(f"container_memory_working_set_bytes{labels} {memory} {time}")
    return lines


def _round(number: int) -> str:
    """The response of the kubelet in a round; a round is ten seconds."""
    at_s = 10.0 * number
    text = [f"node_cpu_usage_seconds_total {100 + 7.5 * number} {round((BASE_S + at_s) * 1000)}"]
    text.append(f"node_memory_working_set_bytes {1_073_741_824 + number} {round((BASE_S + at_s) * 1000)}")
    text += _container("steady", "main", 50 + 1.234567891 * number, 5_000_000, at_s=at_s, started_s=-500)
    restarts = number >= 3
    cpu_s = 3.5 * (number - 2) if restarts else 40 + number
    text += _container("pending", "main", 50 + number, 5_000_000, at_s=at_s, started_s=-500)
    text += _container("restarted", "main", cpu_s, 1024, at_s=at_s, started_s=25 if restarts else -500)
    text += _container("two", "a", 10 + number, 2048, at_s=at_s - 0.5, started_s=-500)
    text += _container("two", "b", 20 + 2 * number, 1_000_000_000, at_s=at_s, started_s=-500)
    text += _container("growing", "a", 10 + number, 2048, at_s=at_s, started_s=-500)
    if number >= 2:
        text += _container("growing", "b", 1 + number, 4096, at_s=at_s, started_s=-400)
    text += _container("idle", "main", 0, 4096, at_s=at_s, started_s=-500)
    if number >= 2:
        text += _container("fresh", "main", 0.25 * (number - 1), 4097, at_s=at_s, started_s=11)
    text += _container("falling", "main", 30 - number, 4096, at_s=at_s, started_s=-500)
    text += _container("unmeasured", "main", 10 + number, None, at_s=at_s, started_s=-500)
    late_s = 10.0 * (number // 2)
    text += _container("late", "main", 10 + late_s / 4, 4096, at_s=late_s, started_s=-500)
    return "\n".join(text) + "\n"


ROUNDS = tuple(_round(number) for number in range(5))
INDEXES = range(len(ROUNDS))
