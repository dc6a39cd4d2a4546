"""The tables and the picture of the benchmark simulation_reality: what the real and the simulated autoscaler wanted."""

import statistics
from collections.abc import Sequence

from benchmarks.reality_system import METRIC_S, PHASES, SYNC_S, Point, rate_steps


def at(points: Sequence[Point], at_s: float) -> Point:
    """The point that holds at a second."""
    return max((point for point in points if point.at_s <= at_s), key=lambda point: point.at_s, default=points[0])


def reached(points: Sequence[Point], begin_s: float, end_s: float) -> dict[int, float]:
    """For each count of replicas the second at which a phase first wanted that many, or more."""
    levels: dict[int, float] = {}
    before = at(points, begin_s).wanted
    for point in points:
        if begin_s <= point.at_s < end_s:
            for level in range(before + 1, point.wanted + 1):
                levels.setdefault(level, point.at_s - begin_s)
            before = max(before, point.wanted)
    return levels


def compare(real: Sequence[Point], virtual: Sequence[Point]) -> list[str]:
    """The lines of the comparison."""
    seconds = range(round(sum(phase[1] for phase in PHASES)))
    differences = [abs(at(real, second).wanted - at(virtual, second).wanted) for second in seconds]
    within = sum(difference <= 1 for difference in differences) / len(differences)
    lines = [
        f"replicas within one pod: {within:.1%} of the time (goal 95 %)",
        f"replicas equal: {differences.count(0) / len(differences):.1%} of the time",
        f"mean replicas: real {statistics.mean(at(real, s).wanted for s in seconds):.2f}, "
        f"simulated {statistics.mean(at(virtual, s).wanted for s in seconds):.2f}",
        "",
        "| phase | most replicas real | simulated | 2nd pod after, real | simulated | most after, real | simulated |",
        "|---|---|---|---|---|---|---|",
    ]
    begin_s = 0.0
    for name, length_s, first, last in PHASES:
        if max(first, last) > 1:
            ours, theirs = (
                reached(points, begin_s, begin_s + length_s + METRIC_S + SYNC_S) for points in (real, virtual)
            )
            lines.append(_phase_row(f"{name} to {last:g}/s", ours, theirs))
        begin_s += length_s
    return lines


def _phase_row(name: str, real: dict[int, float], virtual: dict[int, float]) -> str:
    both = sorted(real.keys() & virtual.keys())
    if not both:
        return f"| {name} | no common scale-up | | | | | |"
    first, most = both[0], both[-1]
    return (
        f"| {name} | {max(real)} | {max(virtual)} | {real[first]:.1f} s | {virtual[first]:.1f} s "
        f"| {real[most]:.1f} s | {virtual[most]:.1f} s |"
    )


def plot(real: Sequence[Point], virtual: Sequence[Point]) -> list[str]:
    """Two rows of digits: the wanted replicas every five seconds."""
    seconds = range(0, round(sum(phase[1] for phase in PHASES)), 5)
    digits = "0123456789ABCDEF"
    rows = (("real     ", real), ("simulated", virtual))
    return [f"{name} {''.join(digits[min(at(points, s).wanted, 15)] for s in seconds)}" for name, points in rows]


def svg(real: Sequence[Point], virtual: Sequence[Point]) -> str:
    """A picture of both: the wanted replicas over time, and below them the requests per second."""
    length_s = sum(phase[1] for phase in PHASES)
    width, height, load_height = 900, 260, 60
    most = max(point.wanted for point in (*real, *virtual)) + 1

    def path(steps: Sequence[tuple[float, float]], zero: float, scale: float) -> str:
        """A step line through (second, value) pairs; `zero` is the y of the value 0."""
        xs = [40 + (width - 60) * at_s / length_s for at_s, _ in [*steps, (length_s, 0)]]
        ys = [zero - value * scale for _, value in steps]
        return "M" + " L".join(
            f"{x:.1f} {y:.1f} L{end:.1f} {y:.1f}" for x, end, y in zip(xs[:-1], xs[1:], ys, strict=True)
        )

    unit = (height - 30) / most
    lines = [
        (path([(p.at_s, p.wanted) for p in real], height, unit), "#b5541c", "podscaler up, real processes", 20),
        (path([(p.at_s, p.wanted) for p in virtual], height, unit), "#1c5fb5", "simulation", 38),
        (path(list(rate_steps()), height + 30 + load_height, load_height / 10), "#777777", "requests per second", 0),
    ]
    axis = "".join(
        f'<text x="30" y="{height - level * unit + 4:.0f}" text-anchor="end">{level}</text>'
        for level in range(0, most + 1, 2)
    )
    legend = "".join(f'<text x="60" y="{y}" fill="{color}">{name}</text>' for _, color, name, y in lines if y)
    legend += f'<text x="60" y="{height + 45}" fill="#777777">requests per second</text>'
    paths = "".join(
        f'<path d="{line}" fill="none" stroke="{color}" stroke-width="1.5"/>' for line, color, _, _ in lines
    )
    size = f'width="{width}" height="{height + load_height + 45}"'
    style = 'font-family="sans-serif" font-size="13"'
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{background}{axis}{legend}{paths}</svg>\n'
