/*
 * What-if: other bounds, targets, windows and policies, decided now and over the recorded time by the server, with the
 * patch that would make the change. Nothing is written to the cluster.
 */

import charts from "./charts.js";
import { autoscalerPath, post } from "./api.js";
import { picture } from "./steps.js";

const { element } = charts;

const POLICY_HELP = "as 4 Pods 60, 100 Percent 15; none: the default";

/** Fields that every autoscaler has: label, path of the field, and the bounds of the input. */
const FIELDS = [
  ["minReplicas", "minReplicas", { min: 0, step: 1 }],
  ["maxReplicas", "maxReplicas", { min: 1, step: 1 }],
  ["scale-down window (s)", "behavior.scaleDown.stabilizationWindowSeconds", { min: 0, max: 3600, step: 1 }],
  ["scale-up window (s)", "behavior.scaleUp.stabilizationWindowSeconds", { min: 0, max: 3600, step: 1 }],
  ["scale-down tolerance", "behavior.scaleDown.tolerance", { min: 0, step: "any" }],
  ["scale-up tolerance", "behavior.scaleUp.tolerance", { min: 0, step: "any" }],
];

/** The policies of a text (POLICY_HELP) as YAML in one line; throws Error with a sentence for any other text. */
export function policies(text) {
  const items = text.split(",").map((part) => part.trim().split(/\s+/));
  for (const item of items) {
    const isGood = item.length === 3 && /^\d+$/.test(item[0]) && ["Pods", "Percent"].includes(item[1]) && /^\d+$/.test(item[2]);
    if (!isGood) throw new Error(`"${item.join(" ")}" is no policy: ${POLICY_HELP}`);
  }
  return `[${items.map(([value, type, period]) => `{type: ${type}, value: ${value}, periodSeconds: ${period}}`).join(", ")}]`;
}

export class WhatIf {
  /** `key`: the autoscaler; `onTimeline` is called with the result over time, or null where there is none any more. */
  constructor(key, onTimeline) {
    this.key = key;
    this.onTimeline = onTimeline;
    this.inputs = new Map();
    this.fields = element("div", { class: "fields" });
    this.result = element("section", { "aria-label": "Result", "aria-live": "polite" });
    this.error = element("p", { class: "error", role: "alert" });
    const form = element("form", { class: "what-if", onsubmit: (event) => this.submit(event) }, this.fields,
      element("p", {}, element("button", { type: "submit" }, "What if?"), " ", element("button", { type: "reset", onclick: () => this.reset() }, "As it is")), this.error);
    this.root = element("section", { class: "panel", "aria-label": "What if" }, element("h2", {}, "What if"),
      element("p", { class: "small" }, "Change fields, and see what would be decided now and over the shown time. Empty fields stay as they are."), form, this.result);
  }

  /** Make the inputs for an autoscaler; values that the user typed stay. */
  fill(row) {
    if (this.inputs.size) return;
    const placeholders = { minReplicas: row.min, maxReplicas: row.max };
    for (const [label, path, bounds] of FIELDS) this.input(label, path, { type: "number", placeholder: placeholders[path] ?? "", ...bounds });
    row.metrics.forEach((metric, index) => {
      const isPercent = metric.unit === "percent";
      const target = isPercent ? metric.target : metric.target / 1000; // other values are in thousandths
      const attributes = { type: "number", min: 0, step: "any", placeholder: metric.target === null ? "" : target };
      this.input(`target of ${metric.name}${isPercent ? " (%)" : ""}`, `metrics[${index}].target`, attributes, isPercent ? "%" : "");
    });
    this.input("scale-up policies", "behavior.scaleUp.policies", { type: "text", placeholder: POLICY_HELP });
    this.input("scale-down policies", "behavior.scaleDown.policies", { type: "text", placeholder: POLICY_HELP });
  }

  input(label, path, attributes, suffix = "") {
    const id = `what-if-${this.inputs.size}`;
    const input = element("input", { id, name: path, autocomplete: "off", ...attributes });
    this.inputs.set(path, { input, suffix });
    this.fields.append(element("p", {}, element("label", { for: id }, label), input));
  }

  /** The changes as `podscaler explain --what-if` takes them. */
  changes() {
    const assignments = [];
    for (const [path, { input, suffix }] of this.inputs) {
      const value = input.value.trim();
      if (!value) continue;
      assignments.push(`${path}=${path.endsWith("policies") ? policies(value) : value + suffix}`);
    }
    return assignments;
  }

  async submit(event) {
    event.preventDefault();
    this.error.textContent = "";
    try {
      const set = this.changes();
      if (!set.length) throw new Error("Change at least one field.");
      this.showResult(await post(autoscalerPath(this.key, "what-if"), { set, ...this.range() }));
    } catch (error) {
      this.error.textContent = error.message;
    }
  }

  /** The range of time that is shown; the page sets it. */
  range() {
    return { from: null, to: null };
  }

  reset() {
    this.error.textContent = "";
    this.result.replaceChildren();
    this.onTimeline(null);
  }

  showResult(result) {
    const { now, overTime, patch } = result;
    const differences = now.differences.length
      ? element("ul", {}, ...now.differences.map((each) => element("li", {}, each)))
      : element("p", {}, "The outcome now is the same.");
    this.result.replaceChildren(
      element("h3", {}, "Now"), element("p", {}, now.after.summary), differences, picture(now.after),
      element("h3", {}, "Over the shown time"), element("p", { class: "small" }, overTime.assumption),
      element("h3", {}, "The patch"), copyable(patch, "Copy the patch"),
    );
    this.onTimeline(overTime);
  }
}

/** A text in fixed width with a button that copies it. */
export function copyable(content, label) {
  const button = element("button", { type: "button" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(content);
      button.textContent = "Copied";
    } catch {
      button.textContent = "The browser does not allow copying: select the text";
    }
    setTimeout(() => (button.textContent = label), 3000);
  });
  return element("div", { class: "copyable" }, button, element("pre", { tabindex: "0" }, content));
}
