"""Recomputes a decision from the JSON of its trace alone, as docs/trace.md documents it.

Independent on purpose: it imports nothing of podscaler and does the arithmetic its own way, so that a trace which
leaves something out, or says something else than what was decided, is found out. Kubernetes 1.37 only.
"""

import math
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]

LIMITED = {
    "DesiredWithinRange": "the desired count is within the acceptable range",
    "ScaleUpLimit": "the desired replica count is increasing faster than the maximum scale rate",
    "ScaleDownLimit": "the desired replica count is decreasing faster than the maximum scale rate",
    "TooManyReplicas": "the desired replica count is more than the maximum replica count",
    "TooFewReplicas": "the desired replica count is less than the minimum replica count",
}
HELD_DOWN = "recent recommendations were higher than current one, applying the highest recent recommendation"
HELD_UP = "recent recommendations were lower than current one, applying the lowest recent recommendation"
DISABLED = "scaling is disabled since the replica count of the target is zero"


def signed(value: int, bits: int) -> int:
    """The low bits of a number, signed."""
    low = value % 2**bits
    return low - 2**bits if low >= 2 ** (bits - 1) else low


def cut(dividend: int, divisor: int) -> int:
    """Integer division that drops the fraction."""
    magnitude = abs(dividend) // abs(divisor)
    return magnitude if (dividend >= 0) == (divisor >= 0) else -magnitude


def quotient(dividend: float, divisor: float) -> float:
    """Division of floats that never fails."""
    try:
        return dividend / divisor
    except ZeroDivisionError:
        return math.nan if dividend == 0 or math.isnan(dividend) else math.copysign(math.inf, dividend)


def up32(value: float) -> int:
    """A float rounded up to an int32, the smallest one where it does not fit."""
    if math.isnan(value) or math.isinf(value):
        return -(2**31)
    whole = math.ceil(value)
    return whole if -(2**31) <= whole < 2**31 else -(2**31)


class Conditions:
    """The conditions as a sync goes on."""

    def __init__(self, before: list[Json]) -> None:
        self.all = [dict(each) for each in before]

    def set(self, at: int, kind: str, status: object, reason: str, message: str) -> None:
        """Overwrite or append; the transition time follows the status."""
        known = next((each for each in self.all if each["type"] == kind), None)
        if known is None:
            self.all.append(known := {"type": kind, "status": ""})
        if known["status"] != str(status):
            known["lastTransitionTime"] = instant(at)
        known |= {"status": str(status), "reason": reason, "message": message}

    def drop(self, kind: str) -> None:
        """Remove a condition."""
        self.all = [each for each in self.all if each["type"] != kind]


def check(trace: Json) -> tuple[int | None, list[Json], str]:
    """The replicas that are written, the conditions, and the error, recomputed from a trace.

    Raises AssertionError where the trace contradicts itself.
    """
    now = trace["now"]
    conditions = Conditions(trace["conditionsBefore"])
    if trace["branch"] == "NoScale":
        failure = trace["scaleFailure"]
        message = f"the HPA controller was unable to get the target's current scale: {failure}"
        conditions.set(now, "AbleToScale", False, "FailedGetScale", message)
        assert trace["error"].endswith(failure)
        return None, conditions.all, trace["error"]
    message = "the HPA controller was able to get the target's current scale"
    conditions.set(now, "AbleToScale", True, "SucceededGetScale", message)
    assert trace["branch"] == branch(trace)
    if trace["branch"] == "Disabled":
        conditions.set(now, "ScalingActive", False, "ScalingDisabled", DISABLED)
        if not trace["zero"]["isEnabled"]:
            conditions.drop("ScaledToZero")
        return None, conditions.all, ""
    if trace["branch"] == "Metrics":
        desired = by_metrics(trace, conditions)
    else:
        desired = trace["maxReplicas"] if trace["branch"] == "AboveMaximum" else trace["minReplicas"]
    if desired is None or desired == trace["currentReplicas"]:
        assert "write" not in trace
        return None, conditions.all, trace.get("error", "")
    return write(trace, desired, conditions), conditions.all, trace.get("error", "")


def branch(trace: Json) -> str:
    """Which way the sync has to go."""
    current, zero = trace["currentReplicas"], trace["zero"]
    if current == 0:
        wakes = zero["wasScaledToZero"] and (trace["minReplicas"] != 0 or zero["scalesOnOthers"])
        return "Metrics" if wakes else "Disabled"
    if current > trace["maxReplicas"]:
        return "AboveMaximum"
    return "BelowMinimum" if current < trace["minReplicas"] else "Metrics"


def by_metrics(trace: Json, conditions: Conditions) -> int | None:
    """What the metrics lead to, None where they allow no conclusion."""
    now, current = trace["now"], trace["currentReplicas"]
    if failure := trace["selection"].get("failure"):
        unselectable(failure, now, conditions)
        return None
    winner, proposal = combined(trace)
    responses = trace["combination"].get("responses", [])
    if proposal is None:
        first = next(metric["failure"] for metric in trace["metrics"] if "failure" in metric)
        message = f"the HPA was unable to compute the replica count: {first['message']}"
        conditions.set(now, "ScalingActive", False, first["reason"], message)
        return None
    if responses:
        conditions.set(now, "ScalingActive", True, responses[-1], responded(trace, responses[-1]))
    else:
        assert winner is not None
        name = trace["metrics"][winner]["name"]
        message = f"the HPA was able to successfully calculate a replica count from {name}"
        conditions.set(now, "ScalingActive", True, "ValidMetricFound", message)
    wanted = stabilized(trace, max(proposal, 0), conditions)
    desired = limited(trace, wanted, conditions)
    if current == 0 and trace["zero"]["wasScaledToZero"] and desired < trace["minReplicas"]:
        assert trace["isLifted"]
        desired = trace["minReplicas"]
    assert desired == trace["desired"]
    return desired


def unselectable(failure: Json, now: int, conditions: Conditions) -> None:
    """The condition where the pods of the target cannot be told."""
    reason, message = failure["reason"], failure["message"]
    if reason == "SelectorRequired":
        reason, message = "InvalidSelector", "the HPA target's scale is missing a selector"
    if reason:
        conditions.set(now, "ScalingActive", False, reason, message)


def combined(trace: Json) -> tuple[int | None, int | None]:
    """The winner's index and the proposal; no proposal where nothing may be concluded."""
    metrics, policy = trace["metrics"], trace.get("failurePolicy", {})
    best, winner, responses = 0, None, []
    for index, metric in enumerate(metrics):
        if "kept" in metric:
            assert "failure" in metric
            assert 0 <= trace["now"] - metric["kept"]["at"] <= policy["keepLastNs"]
            replicas, responses = metric["proposal"], ["LastMetricValueKept"]
        elif "failure" in metric:
            assert "proposal" not in metric
            continue
        else:
            replicas = proposal_of(trace, metric)
            assert replicas == metric["proposal"]
        if best == 0 or replicas > best:
            best, winner = replicas, index
    failed = [index for index, metric in enumerate(metrics) if "failure" in metric]
    combination = trace["combination"]
    assert (combination["winner"], combination.get("failed", [])) == (winner, failed)
    proposal: int | None = best
    if winner is None:
        proposal = fallback(trace, policy)
        responses.append("FallbackReplicasApplied")
    elif best < trace["currentReplicas"] and any("proposal" not in metric for metric in metrics):
        proposal = best if policy.get("ignoresFailed") else None
        responses.append("FailedMetricIgnored")
    assert combination["proposal"] == proposal
    assert combination.get("responses", []) == ([] if proposal is None else responses)
    return winner, proposal


def fallback(trace: Json, policy: Json) -> int | None:
    """The fallback replicas, None where there are none or it is too early for them."""
    if policy.get("fallbackReplicas") is None:
        return None
    is_due = trace["now"] - policy["unreadSince"] >= policy.get("fallbackAfterNs", 0)
    replicas: int = policy["fallbackReplicas"]
    return replicas if is_due else None


def responded(trace: Json, response: str) -> str:
    """The message of ScalingActive about what a failure policy did."""
    metrics = trace["metrics"]
    failure = next(metric["failure"]["message"] for metric in metrics if "failure" in metric)
    if response == "FallbackReplicasApplied":
        return f"the HPA applies the fallback replicas ({trace['combination']['proposal']}): {failure}"
    if response == "FailedMetricIgnored":
        ignored = " and ".join(metric["name"] for metric in metrics if "proposal" not in metric)
        return f"the HPA ignores {ignored}: {failure}"
    kept = " and ".join(
        f"{metric['name']}, read at {instant(metric['kept']['at'])}" for metric in metrics if "kept" in metric
    )
    return f"the HPA uses the last value of {kept}: {failure}"


def instant(at: int) -> str:
    """RFC 3339, in whole seconds."""
    return datetime.fromtimestamp(at // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def proposal_of(trace: Json, metric: Json) -> int:
    """What one metric proposes."""
    calculation = metric["calculation"]
    if calculation["method"] == "PerPod":
        return per_pod(trace, metric, calculation)
    usage, target = float(calculation["usageMilli"]), float(metric["target"])
    current, status = trace["currentReplicas"], trace["statusReplicas"]
    if calculation["method"] == "OfAverage":
        if is_within(trace, quotient(usage, target * float(status))):
            return status
        wanted = quotient(usage, target)
        return 2**31 - 1 if metric["type"] == "External" and wanted > 2**31 - 1 else up32(wanted)
    ratio = quotient(usage, target)
    if current == 0:
        return up32(ratio)
    if is_within(trace, ratio):
        return current
    wanted = ratio * float(calculation["readyPods"])
    return 2**31 - 1 if wanted > 2147483647.0 else up32(wanted)


def is_within(trace: Json, ratio: float) -> bool:
    """Whether a ratio calls for no change."""
    return (1.0 - trace["toleranceDown"]) <= ratio <= (1.0 + trace["toleranceUp"])


def per_pod(trace: Json, metric: Json, calculation: Json) -> int:
    """The proposal of a metric with a value for each pod."""
    groups: dict[str, list[Json]] = {"Counted": [], "Ignored": [], "Unready": [], "Missing": []}
    for pod in calculation["pods"]:
        groups[pod["group"]].append(pod)
    counted = [(pod["valueMilli"], pod.get("requestMilli")) for pod in groups["Counted"]]
    strangers = [(each["valueMilli"], None) for each in calculation.get("unlisted", [])]
    of_requests = "requestsMilli" in calculation["first"] and calculation["first"]["requestsMilli"] is not None
    ratio = ratio_of(metric, counted if of_requests else counted + strangers, of_requests)
    fills_unready = bool(groups["Unready"]) and ratio > 1.0
    current = trace["currentReplicas"]
    if not fills_unready and not groups["Missing"]:
        return current if is_within(trace, ratio) else up32(ratio * float(len(counted)))
    filled = fill(metric, groups, ratio, fills_unready)
    second = ratio_of(metric, counted + filled + ([] if of_requests else strangers), of_requests)
    reverses = (ratio < 1.0 and second > 1.0) or (ratio > 1.0 and second < 1.0)
    if is_within(trace, second) or reverses:
        return current
    replicas = up32(second * float(len(counted) + len(strangers) + len(filled)))
    goes_wrong = (second < 1.0 and replicas > current) or (second > 1.0 and replicas < current)
    return current if goes_wrong else replicas


def fill(metric: Json, groups: dict[str, list[Json]], ratio: float, fills_unready: bool) -> list[tuple[Any, Any]]:
    """What is assumed for missing and unready pods; the trace must say the same."""
    filled = []
    for pod in groups["Missing"]:
        request = pod.get("requestMilli")
        if ratio < 1.0:
            amount = metric["target"] if request is None else cut(signed(request * max(100, metric["target"]), 64), 100)
        elif ratio > 1.0:
            amount = 0
        else:
            assert "filledMilli" not in pod
            continue
        assert pod["filledMilli"] == amount
        filled.append((amount, request))
    for pod in groups["Unready"]:
        assert pod.get("filledMilli") == (0 if fills_unready else None)
        if fills_unready:
            filled.append((0, pod.get("requestMilli")))
    return filled


def ratio_of(metric: Json, entries: list[tuple[Any, Any]], of_requests: bool) -> float:
    """Usage over target: as percent of the requests, or as an average."""
    usage = signed(sum(value for value, _ in entries), 64)
    if not of_requests:
        return quotient(float(cut(usage, len(entries))), float(metric["target"]))
    requests = signed(sum(request for _, request in entries), 64)
    percent = signed(cut(signed(usage * 100, 64), requests), 32)
    return quotient(float(percent), float(metric["target"]))


def stabilized(trace: Json, proposal: int, conditions: Conditions) -> int:
    """The proposal, held back by earlier recommendations."""
    step, current = trace["stabilization"], trace["currentReplicas"]
    assert step["proposal"] == proposal
    past = [(each["replicas"], each["at"]) for each in step["recommendations"]]
    down, up = step["downCutoff"], step["upCutoff"]
    if up is None:
        result = max([proposal, *(replicas for replicas, at in past if at >= down)])
        held = ("ScaleDownStabilized", HELD_DOWN)
    else:
        highest = max([proposal, *(replicas for replicas, at in past if at > down)])
        lowest = min([proposal, *(replicas for replicas, at in past if at > up)])
        result = min(max(current, lowest), highest)
        held = ("ScaleUpStabilized", HELD_UP) if proposal >= current else ("ScaleDownStabilized", HELD_DOWN)
    ready = ("ReadyForNewScale", "recommended size matches current size")
    conditions.set(trace["now"], "AbleToScale", True, *(ready if result == proposal else held))
    assert step["result"] == result
    return result


def limited(trace: Json, wanted: int, conditions: Conditions) -> int:
    """The count within rates and bounds."""
    step, current = trace["limits"], trace["currentReplicas"]
    if trace["stabilization"]["upCutoff"] is None:
        top = int(max(2.0 * current, 4.0)) if 2.0 * current < 2**31 else -(2**31)
        result, reason = between(trace, wanted, trace["minReplicas"], top)
    elif wanted > current:
        result, reason = between(trace, wanted, None, max(current, allowance(trace, "Up")))
    elif wanted < current:
        bottom = min(current, allowance(trace, "Down"))
        lowest, why = (
            (bottom, "ScaleDownLimit") if trace["minReplicas"] < bottom else (trace["minReplicas"], "TooFewReplicas")
        )
        result, reason = (lowest, why) if wanted < lowest else (wanted, "DesiredWithinRange")
    else:
        result, reason = wanted, "DesiredWithinRange"
    assert (step["result"], step["reason"]) == (result, reason)
    conditions.set(trace["now"], "ScalingLimited", result != wanted, reason, LIMITED[reason])
    return result


def between(trace: Json, wanted: int, lowest: int | None, top: int) -> tuple[int, str]:
    """`wanted`, or the bound that it breaks, with the reason."""
    if lowest is not None and wanted < lowest:
        return lowest, "TooFewReplicas"
    highest, why = (top, "ScaleUpLimit") if trace["maxReplicas"] > top else (trace["maxReplicas"], "TooManyReplicas")
    return (highest, why) if wanted > highest else (wanted, "DesiredWithinRange")


def allowance(trace: Json, direction: str) -> int:
    """How far the policies allow to go."""
    step, current = trace["limits"], trace["currentReplicas"]
    assert step["direction"] == direction
    if step["selectPolicy"] == "Disabled":
        return current
    sign = 1 if direction == "Up" else -1
    limits = []
    for policy in step["policies"]:
        cutoff = trace["now"] - policy["periodNs"]
        added = changed(step.get("scaleUps", []), cutoff)
        removed = changed(step.get("scaleDowns", []), cutoff)
        start = signed(current - added + removed, 32)
        if policy["type"] == "Pods":
            limit = signed(start + sign * policy["value"], 32)
        else:
            scaled = start * (1.0 + sign * policy["value"] / 100.0)
            limit = up32(scaled) if sign > 0 else int(scaled)
        assert (policy["added"], policy["removed"], policy["start"]) == (added, removed, start)
        assert (policy["limit"], policy["remaining"]) == (limit, sign * (limit - current))
        limits.append(limit)
    return min(limits) if (step["selectPolicy"] == "Min") == (sign > 0) else max(limits)


def changed(events: list[Json], cutoff: int) -> int:
    """What was changed after an instant."""
    return signed(sum(event["change"] for event in events if event["at"] > cutoff), 32)


def write(trace: Json, desired: int, conditions: Conditions) -> int | None:
    """What became of the scale."""
    step, current = trace["write"], trace["currentReplicas"]
    assert step["replicas"] == desired
    if error := step.get("error"):
        message = f"the HPA controller was unable to update the target scale: {error}"
        conditions.set(step["at"], "AbleToScale", False, "FailedUpdateScale", message)
        return None
    message = f"the HPA controller was able to update the target scale to {desired}"
    conditions.set(step["at"], "AbleToScale", True, "SucceededRescale", message)
    zero = trace["zero"]
    if not zero["isEnabled"]:
        conditions.drop("ScaledToZero")
    elif current > 0 and desired == 0 and trace["minReplicas"] == 0 and zero["scalesOnOthers"]:
        message = "the HPA controller scaled the workload to zero"
        conditions.set(step["at"], "ScaledToZero", True, "ScaledToZero", message)
    else:
        message = "the HPA controller did not scale the workload to zero"
        conditions.set(step["at"], "ScaledToZero", False, "NotScaledToZero", message)
    return desired
