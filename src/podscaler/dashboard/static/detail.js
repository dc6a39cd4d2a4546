/*
 * One autoscaler: the time line of its replicas with its decisions, each metric against its target, the explanation of a
 * decision as a picture and in words, what-if, and what the cluster says about it.
 *
 * The plots and the list of decisions are those of reports; explanations are read when a decision is selected.
 */

import charts from "./charts.js";
import { autoscalerPath, errorText, get } from "./api.js";
import { age, replicasText, sinceText, stateElement } from "./list.js";
import { picture } from "./steps.js";
import { WhatIf, copyable } from "./what_if.js";

const { DecisionPanel, SharedZoom, TimePlotView, element } = charts;

const RANGES = { "15 minutes": 15, "1 hour": 60, "6 hours": 360, "24 hours": 1440 };
const DEFAULT_RANGE_MIN = 60;
const MINUTE_MS = 60000;
const LIVE_PERIOD_MS = 5000;
/** The kind of a decision in a report, by its kind in the server's JSON. */
const REPORT_KINDS = { up: "up", down: "down", limited: "held", held: "held", failed: "failed", same: "same" };
const DAY_S = 86400;

/** The minutes of the page's address; null: it has none, or something that is no range. */
function readRange(text) {
  return Object.values(RANGES).find((minutes) => String(minutes) === text) ?? null;
}

/** A sentence about an invalid range in the page's address, and what is shown instead; empty if it is valid. */
function rangeNote(text) {
  if (text === null || readRange(text) !== null) return "";
  return `The address asks for “${text}” minutes; there are ${Object.values(RANGES).join(", ")}. The last hour is shown: choose another one above.`;
}

/** The time of day of an instant in seconds since `midnight`, in the browser's time zone. */
function timeOfDay(seconds) {
  const two = (part) => String(part).padStart(2, "0");
  const second = Math.floor(((seconds % DAY_S) + DAY_S) % DAY_S);
  return `${two(Math.floor(second / 3600))}:${two(Math.floor(second / 60) % 60)}:${two(second % 60)}`;
}

/** The local midnight before an instant, in milliseconds since the epoch. */
function midnightBefore(ms) {
  return new Date(ms).setHours(0, 0, 0, 0);
}

/** The list of decisions with the explanation of the selected one, which `readExplanation(id)` reads from the server. */
class LiveDecisions extends DecisionPanel {
  constructor(part, readExplanation) {
    super(part, timeOfDay);
    this.readExplanation = readExplanation;
  }

  /** Select a decision at once, and explain it when its explanation is there. */
  async select(decision) {
    super.select(decision);
    if (decision.explanation) return;
    try {
      const { explanation } = await this.readExplanation(decision.id);
      Object.assign(decision, { explanation, summary: explanation.summary, advice: explanation.advice, sections: explanation.steps });
      super.select(decision);
      this.explanation.querySelector("h4")?.after(picture(explanation));
    } catch (error) {
      this.explanation.append(element("p", { class: "error", role: "alert" }, errorText(error)));
    }
  }
}

/**
 * The page of one autoscaler; `app` (app.js) makes it for the address and calls `show`, `update`, `remove`, `timeline` and
 * `close`. `key` has namespace and name; `query` is the query of the address: `decision` and `minutes`.
 */
export class DetailPage {
  constructor(app, key, query) {
    this.app = app;
    this.key = key;
    this.title = `${key.namespace}/${key.name}`;
    this.linkedId = query.get("decision"); // the decision of the address
    this.idToSelect = this.linkedId;
    this.rangeMin = readRange(query.get("minutes")) ?? DEFAULT_RANGE_MIN;
    this.end = null;
    this.detail = null;
    this.overTime = null;
    this.views = [];
    this.state = element("section", { class: "summary", "aria-label": "State" });
    this.error = element("div", { role: "alert" });
    this.addressNote = element("p", { role: "status" }, rangeNote(query.get("minutes")));
    this.plots = element("div", { class: "columns" });
    this.zoomBar = element("div");
    this.idToReselect = null; // the decision that was selected in a list that is replaced
    this.tables = element("div");
    this.whatIf = new WhatIf(key, (overTime) => this.showWhatIf(overTime));
    this.whatIf.range = () => this.range();
    this.root = element("main", { class: "detail" }, element("p", {}, element("a", { href: "#/" }, "← All autoscalers")), element("h1", {}, this.title),
      this.error, this.state, element("h2", {}, "Time line"), this.controls(), this.addressNote, this.zoomBar, this.plots, this.whatIf.root, this.tables);
    this.onTheme = () => this.views.forEach((view) => view.chart.redraw(false));
    document.addEventListener("themechange", this.onTheme);
    this.isDue = false;
    this.timer = setInterval(() => this.isDue && this.end === null && this.show(), LIVE_PERIOD_MS);
  }

  controls() {
    const known = Object.entries(RANGES).map(([name, minutes]) => element("option", { value: minutes, selected: minutes === this.rangeMin }, name));
    const range = element("select", { id: "range", onchange: () => this.setRange(Number(range.value), this.end) }, ...known);
    const end = element("input", { type: "datetime-local", id: "end", step: 1, onchange: () => this.setRange(this.rangeMin, end.value ? new Date(end.value).getTime() : null) });
    const live = element("button", { type: "button", onclick: () => this.setRange(this.rangeMin, (end.value = "") || null) }, "Now");
    return element("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
      element("label", { for: "range" }, "Shown "), range, element("label", { for: "end" }, " until "), end, live);
  }

  setRange(minutes, end) {
    this.rangeMin = minutes;
    this.end = end;
    this.show();
  }

  /** The time that is shown: as chosen, without the part before anything is known, and a minute at least. */
  range() {
    const to = this.end ?? this.app.now();
    const known = this.detail?.since ?? this.app.listing?.since ?? 0;
    return { from: Math.max(to - this.rangeMin * MINUTE_MS, Math.min(known, to - MINUTE_MS)), to };
  }

  async show() {
    this.isDue = false;
    try {
      this.detail = await get(autoscalerPath(this.key), this.range());
    } catch (error) {
      this.fail(error);
      return;
    }
    this.error.replaceChildren();
    this.showState(this.detail.row);
    this.whatIf.fill(this.detail.row);
    this.drawPlots();
    this.showTables();
    this.idToSelect = this.idToSelect || this.idToReselect;
    this.idToReselect = null;
    if (this.idToSelect) this.selectDecision();
  }

  /** Show an error; the request is repeated at the next period unless it was wrong itself. */
  fail(error) {
    if (error.kind === "session") {
      this.app.showError(error);
      return;
    }
    const texts = [errorText(error)];
    if (error.kind === "gone") texts.push("It was deleted, or never existed. If it comes back, this page shows it.");
    this.error.replaceChildren(...texts.map((each) => element("p", { class: "error" }, each)));
    if (error.kind !== "bad") this.isDue = true;
  }

  /** The stream has changed rows: show this autoscaler's, and read the rest at the next period. */
  update(rows) {
    const row = rows.find((each) => each.namespace === this.key.namespace && each.name === this.key.name);
    if (!row) return;
    this.showState(row);
    this.isDue = true;
  }

  remove(key) {
    if (key.namespace === this.key.namespace && key.name === this.key.name) {
      this.error.replaceChildren(element("p", { class: "error" }, `${this.title} was deleted. What is known of it stays here until you leave.`));
    }
  }

  /** The stream has new points of this autoscaler: they are read at the next period. */
  timeline() {
    this.isDue = true;
  }

  showState(row) {
    const counts = `${row.target}: ${replicasText(row)} replicas, ${row.ready ?? "–"} ready, ${row.min} to ${row.max}`;
    const by = row.decidedBy ? ` Decided by ${row.decidedBy}.` : "";
    const metrics = row.metrics.map((metric) => element("span", { class: "metric" }, `${metric.name} ${metric.text}`));
    const notes = this.detail ? this.detail.notes : [];
    this.state.replaceChildren(
      element("p", {}, stateElement(row), " ", counts), element("p", {}, ...metrics), ...(row.reason ? [element("p", {}, row.reason)] : []),
      element("p", { class: "small" }, `${this.detail ? sinceText(this.detail) : ""}${by}`), ...notes.map((note) => element("p", { class: "small" }, note)),
    );
  }

  /** The time line in the form of a report's part (charts.js): seconds since the local midnight before its begin. */
  reportPart() {
    const { timeline, decisions } = this.detail;
    const midnight = midnightBefore(this.range().from);
    const seconds = (ms) => (ms - midnight) / 1000;
    const line = (label, values, color, more = {}) => ({ label, values, color, isDashed: false, isFilled: false, keepsChanges: true, ...more });
    const atS = timeline.at.map(seconds);
    const replicas = {
      title: "Replicas", unit: "pods", atS, hasDecisions: true, band: null, drawn: null,
      series: [
        line("ready", timeline.ready, "green", { isFilled: true }),
        line("wanted by metrics", timeline.desired, "orange", { isDashed: true }),
        line("after limits", timeline.limited, "blue"),
        line("minimum", timeline.min, "gray", { isDashed: true }),
        line("maximum", timeline.max, "gray", { isDashed: true }),
      ],
    };
    return {
      autoscaler: this.title, workload: this.detail.row.target, plots: [replicas, ...timeline.metrics.map((metric) => metricPlot(metric, atS, line))],
      decisions: decisions.map((mark) => ({ ...mark, atS: seconds(mark.at), kind: REPORT_KINDS[mark.kind], before: mark.from, after: mark.to ?? mark.from, wanted: null, advice: [], sections: [] })),
      decisionsTotal: decisions.length,
    };
  }

  /** Draw everything again; a zoom stays, and so does the list of decisions as long as there is no new one. */
  drawPlots() {
    const part = this.reportPart();
    const { from, to } = this.range();
    const midnight = midnightBefore(from);
    const zoomed = this.zoom && this.zoom.span !== this.zoom.whole ? this.zoom.span : null;
    this.zoom = new SharedZoom((from - midnight) / 1000, (to - midnight) / 1000, timeOfDay);
    this.keepPanel(part, midnight);
    this.views.forEach((view) => view.chart.destroy());
    this.views = part.plots.map((plot) => new TimePlotView(plot, this.zoom, this.panel.marks));
    const [replicas, ...metrics] = this.views;
    this.plots.replaceChildren(replicas.figure, this.panel.panel, ...metrics.map((view) => view.figure));
    this.zoomBar.replaceChildren(charts.zoomButtons(this.zoom));
    this.views.forEach((view) => view.draw());
    if (this.overTime) this.addWhatIf(replicas, this.overTime);
    if (zoomed) this.zoom.set(zoomed.from, zoomed.to);
  }

  /** Make the list of decisions; the one that is there stays if it has the same ones. */
  keepPanel(part, midnight) {
    const content = `${midnight} ${part.decisions.map((each) => each.id).join(" ")}`;
    if (this.panel && this.panelContent === content) return;
    const selected = this.panel && this.panel.marks.selected;
    this.panel = new LiveDecisions(part, (id) => get(autoscalerPath(this.key, "decisions", id)));
    this.panelContent = content;
    if (selected) this.idToReselect = selected.id;
  }

  selectDecision() {
    const found = this.panel.part.decisions.find((each) => each.id === this.idToSelect);
    const isLinked = this.idToSelect === this.linkedId;
    this.idToSelect = null;
    if (found) this.panel.select(found);
    else if (isLinked) this.addressNote.textContent = `The decision “${this.linkedId}” of the address is not among those of this time range: choose a longer one above; the oldest are not kept.`;
  }

  /** Draw the counts that another spec would have had into the plot of replicas; null: take them away. */
  showWhatIf(overTime) {
    this.overTime = overTime;
    if (this.detail) this.drawPlots();
  }

  /** Add the what-if's counts to the plot of replicas; each stays until the next one that is known. */
  addWhatIf(replicas, overTime) {
    let index = -1;
    const values = this.detail.timeline.at.map((ms) => {
      while (index + 1 < overTime.at.length && overTime.at[index + 1] <= ms) index += 1;
      return index < 0 ? null : overTime.limited[index];
    });
    replicas.addSeries({ label: "what if", values, color: "purple", isDashed: false, isFilled: false, keepsChanges: true });
  }

  showTables() {
    const { now, events, pods, lint, conditions, yaml } = this.detail;
    const since = (ms) => (ms === null ? "–" : age(now - ms));
    const milli = (value) => (value === undefined ? "–" : `${value}m`);
    const open = new Set([...this.tables.querySelectorAll("details[open]")].map((each) => each.dataset.name));
    const section = (name, count, content) =>
      element("details", { "data-name": name, open: open.has(name) }, element("summary", {}, `${name} (${count})`), content);
    this.tables.replaceChildren(
      section("Events", events.length, table("Events", ["Age", "Type", "Reason", "Object", "Message"], events.map((each) => [since(each.at), each.type, each.reason, each.object, each.count > 1 ? `${each.message} (×${each.count})` : each.message]))),
      section("Pods", pods.length, table("Pods", ["Name", "Phase", "Ready", "Age", "CPU of request", "Not counted as it is"], pods.map((each) => [each.name, `${each.phase} ${each.reason}`, each.ready ? "yes" : "no", since(each.startedAt), `${milli(each.usage.cpu)} of ${milli(each.requests.cpu)}`, each.ignored]))),
      section("Lint findings", lint.length, table("Lint findings", ["Rule", "Severity", "Field", "Finding", "Fix"], lint.map((each) => [each.rule, each.severity, each.place, each.message, each.fix]))),
      section("Conditions", conditions.length, table("Conditions", ["Type", "Status", "Age", "Reason", "Message"], conditions.map((each) => [each.type, each.status, since(each.lastTransitionAt), each.reason, each.message]))),
      section("YAML", yaml.split("\n").length, copyable(yaml, "Copy the YAML")),
    );
  }

  close() {
    clearInterval(this.timer);
    document.removeEventListener("themechange", this.onTheme);
    this.views.forEach((view) => view.chart.destroy());
  }
}

function table(title, columns, rows) {
  return rows.length ? charts.tableElement({ title, columns, rows }) : element("p", { class: "small" }, "None.");
}

/** The plot of a metric against its target, with the band within which nothing changes; `line` makes a series. */
function metricPlot(metric, atS, line) {
  const factor = metric.unit === "percent" ? 1 : 1000; // other values are in thousandths
  const scaled = (values, share = 1) => values.map((value) => (value === null ? null : (value / factor) * share));
  return {
    title: metric.name, unit: metric.unit === "percent" ? "%" : "", atS, hasDecisions: false, drawn: null,
    series: [line("current", scaled(metric.current), "orange", { keepsChanges: false }), line("target", scaled(metric.target), "blue", { isDashed: true })],
    band: { label: "tolerance", low: scaled(metric.target, 1 - metric.toleranceDown), high: scaled(metric.target, 1 + metric.toleranceUp) },
  };
}
