/*
 * The picture of a decision: boxes from the pods to the replicas, each with its numbers; a box that changed or held the
 * count is marked. The words of the explanation are below the picture, and say the same.
 *
 * The boxes come from the trace of the explanation (docs/trace.md); a step that the decision did not take has no box. A
 * new step of the trace: a box in `boxes`.
 */

import charts from "./charts.js";

const { element } = charts;

/** The boxes of an explanation: a list of { title, lines, isActive }. */
export function boxes(explanation) {
  const { trace, verdict } = explanation;
  const found = [];
  if (trace.currentReplicas !== null && trace.currentReplicas !== undefined) {
    found.push({ title: "Replicas now", lines: [`${trace.currentReplicas}`], isActive: false });
  }
  for (const [index, metric] of (trace.metrics || []).entries()) found.push(...metricBoxes(metric, index, explanation));
  if (trace.combination && trace.metrics.length > 1) {
    found.push({ title: "Largest proposal", lines: [`${text(trace.combination.proposal)}`], isActive: false });
  }
  if (trace.stabilization) found.push(stabilizationBox(trace.stabilization));
  if (trace.limits) found.push(...limitBoxes(trace.limits, trace));
  found.push({ title: "Result", lines: [resultText(verdict), verdict.ending], isActive: verdict.desired !== verdict.current });
  return found;
}

function text(value) {
  return value === null || value === undefined ? "none" : String(value);
}

function resultText(verdict) {
  if (verdict.desired === null || verdict.desired === undefined) return "no change";
  return verdict.desired === verdict.current ? `stays at ${verdict.current}` : `${verdict.current} → ${verdict.desired}`;
}

/** The text of the last line with a label in the explanation's section about a metric; empty where there is none. */
function lineOf(explanation, index, label) {
  const section = explanation.steps.find((each) => each.title.startsWith(`metrics[${index}]`));
  const lines = section ? section.lines.filter((each) => each.label === label) : [];
  return lines.length ? lines[lines.length - 1].text : "";
}

/** The boxes of one metric: its pods, if it is of pods, and its proposal. */
function metricBoxes(metric, index, explanation) {
  const made = [];
  const calculation = metric.calculation || {};
  if (calculation.pods) {
    const counted = calculation.pods.filter((pod) => pod.group === "Counted").length;
    const others = calculation.pods.length - counted;
    made.push({ title: "Pods", lines: [`${counted} used`, `${others} not used as they are`], isActive: others > 0 });
  }
  const step = calculation.second || calculation.first || calculation; // a metric of pods is calculated once or twice
  const ratio = lineOf(explanation, index, "ratio");
  const lines = ratio ? [ratio] : [];
  if (metric.failure || metric.error) lines.push("could not be read");
  lines.push(`proposes ${text(metric.proposal)}`);
  made.push({ title: `Metric ${index + 1}: ${metric.name || metric.type}`, lines, isActive: Boolean(step.isWithinTolerance) });
  return made;
}

function stabilizationBox(step) {
  const lines = [`${text(step.proposal)} proposed`];
  if (step.highest !== null && step.highest !== undefined) lines.push(`highest of the window ${step.highest}`);
  if (step.lowest !== null && step.lowest !== undefined) lines.push(`lowest of the window ${step.lowest}`);
  lines.push(step.heldBy ? `held at ${step.result}` : `${step.result} stays`);
  return { title: "Stabilization", lines, isActive: step.result !== step.proposal };
}

function limitBoxes(step, trace) {
  const hasLimit = step.rateLimit !== null && step.rateLimit !== undefined;
  const isRate = hasLimit && (step.policies.length > 0 || step.direction === "Up"); // the default rate limits scaling up only
  const made = [];
  if (isRate) {
    const policies = step.policies.length ? `${step.policies.length} policies` : "default rate";
    const isActive = step.direction === "Up" ? step.wanted > step.rateLimit : step.wanted < step.rateLimit;
    made.push({ title: "Policies", lines: [policies, `to ${step.rateLimit} at ${step.direction === "Up" ? "most" : "least"}`], isActive });
  }
  const bounds = `${text(trace.minReplicas)} to ${text(trace.maxReplicas)}`;
  made.push({ title: "Bounds", lines: [bounds, step.reason], isActive: step.bound !== null && step.bound !== undefined });
  return made;
}

/** The picture, as an ordered list that reads well without it being seen. */
export function picture(explanation) {
  const items = boxes(explanation).map((box) =>
    element("li", { class: box.isActive ? "box active" : "box" }, element("h4", {}, box.title), ...box.lines.map((line) => element("p", {}, line))),
  );
  return element("ol", { class: "steps", "aria-label": "The steps of the decision" }, ...items);
}
