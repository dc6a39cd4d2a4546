/*
 * The list of autoscalers: problems first, with a filter, orders and keys (j, k, Enter, /).
 *
 * A row's element is made once and changed in place, so that an update of some of a thousand autoscalers costs what
 * these some cost; elements are moved only when the order changes.
 */

import charts from "./charts.js";

const { element } = charts;

const ORDERS = {
  problems: ["problems first", (a, b) => b.severity - a.severity || byName(a, b)],
  name: ["by name", (a, b) => byName(a, b)],
  replicas: ["most replicas first", (a, b) => (b.replicas ?? -1) - (a.replicas ?? -1) || byName(a, b)],
  changed: ["latest change first", (a, b) => (b.changedAt ?? 0) - (a.changedAt ?? 0) || byName(a, b)],
};
const COLUMNS = ["Autoscaler", "State", "Replicas", "Ready", "Min–max", "Metrics against targets", "Last 30 minutes", "Changed"];
/** By the severity of a row, as podscaler.observe.health numbers it; from PROBLEM_SEVERITY on it is a problem. */
const SIGNS = ["✓", "i", "!", "‼"];
const SEVERITIES = ["fine", "notable", "limited", "broken"];
const PROBLEM_SEVERITY = 2;
const SPARK = { width: 90, height: 20 };
const AGE_PERIOD_MS = 10000;

function byName(a, b) {
  return a.namespace.localeCompare(b.namespace) || a.name.localeCompare(b.name);
}

/** A span of time as kubectl's short form: `47h`, `3d`. */
export function age(ms) {
  if (ms === null || ms === undefined) return "–";
  const seconds = Math.max(Math.floor(ms / 1000), 0);
  const units = [[172800, 86400, "d"], [7200, 3600, "h"], [120, 60, "m"], [0, 1, "s"]]; // from, size, letter
  const [, size, unit] = units.find(([from]) => seconds >= from);
  return `${Math.floor(seconds / size)}${unit}`;
}

/** From when on decisions are known, and why not from earlier on. */
export function sinceText({ since, sinceReason }) {
  const known = since === null ? "" : `Decisions are known since ${new Date(since).toLocaleTimeString()}: `;
  return known ? asSentence(known + sinceReason) : asSentence(sinceReason);
}

/** A text with a capital letter and a full stop. */
export function asSentence(text) {
  return text ? `${text[0].toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}` : "";
}

/** The state as a word with a sign and a colour of its own. */
export function stateElement(row) {
  return element("span", { class: `state ${SEVERITIES[row.severity]}` }, element("i", { "aria-hidden": "true" }, SIGNS[row.severity]), row.state);
}

export function replicasText(row) {
  const now = row.replicas ?? "–";
  return row.desired === null || row.desired === row.replicas ? `${now}` : `${now} (wants ${row.desired})`;
}

/** A small line of the replicas, from 0 to their most. */
function sparkline(values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${SPARK.width} ${SPARK.height}`);
  svg.setAttribute("class", "spark");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", values.length ? `replicas from ${values[0]} to ${values[values.length - 1]}, at most ${Math.max(...values)}` : "no history");
  if (!values.length) return svg;
  const most = Math.max(...values, 1);
  const step = SPARK.width / Math.max(values.length - 1, 1);
  const y = (value) => (SPARK.height - 2 - (value / most) * (SPARK.height - 4)).toFixed(1);
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", values.map((value, index) => `${(index * step).toFixed(1)},${y(value)}`).join(" "));
  svg.append(line);
  return svg;
}

/** The table row of one autoscaler; its cells are in the order of COLUMNS. */
class RowView {
  constructor(row) {
    this.cells = COLUMNS.map((name, index) => (index ? element("td", { "data-label": name }) : element("th", { scope: "row" })));
    this.root = element("tr", { class: "row" }, ...this.cells);
    this.spark = "";
    this.update(row);
  }

  update(row) {
    this.row = row;
    const href = `#/${encodeURIComponent(row.namespace)}/${encodeURIComponent(row.name)}`;
    const link = element("a", { href }, element("span", { class: "small" }, `${row.namespace}/`), row.name);
    this.cells[0].replaceChildren(link, ...(row.kind === "PodAutoscaler" ? [element("span", { class: "small" }, " PodAutoscaler")] : []));
    this.cells[1].replaceChildren(stateElement(row), ...(row.reason ? [element("span", { class: "reason" }, row.reason)] : []));
    this.cells[2].textContent = replicasText(row);
    this.cells[3].textContent = row.ready ?? "–";
    this.cells[4].textContent = `${row.min}–${row.max}`;
    this.cells[5].replaceChildren(...row.metrics.map((metric) => element("span", { class: "metric" }, `${metric.name} ${metric.text}`)));
    const spark = row.sparkline.join(",");
    if (spark !== this.spark || !this.cells[6].firstChild) this.cells[6].replaceChildren(sparkline(row.sparkline));
    this.spark = spark;
  }

  showAge(now) {
    const { changedAt } = this.row;
    this.cells[7].textContent = changedAt === null ? "–" : age(now - changedAt);
  }
}

/** The page of all autoscalers; `app` (app.js) makes it and calls `show`, `update`, `remove` and `close`. */
export class ListPage {
  constructor(app) {
    this.app = app;
    this.title = "Autoscalers";
    this.views = new Map();
    this.order = "problems";
    this.words = [];
    this.onlyProblems = false;
    this.summary = element("p", { class: "small", "aria-live": "polite" });
    this.body = element("tbody");
    this.filter = element("input", { type: "search", id: "filter", placeholder: "name, state, target, metric", oninput: () => this.filterChanged() });
    this.root = element("main", { class: "list" }, element("h1", {}, "Autoscalers"), this.summary, this.controls(), this.table());
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
    this.timer = setInterval(() => this.showAges(), AGE_PERIOD_MS);
  }

  controls() {
    const choices = Object.entries(ORDERS).map(([name, [text]]) => element("option", { value: name }, text));
    const order = element("select", { id: "order", onchange: () => this.sortBy(order.value) }, ...choices);
    const problems = element("input", { type: "checkbox", id: "problems", onchange: () => this.problemsChanged(problems.checked) });
    return element(
      "form",
      { class: "controls", role: "search", onsubmit: (event) => event.preventDefault() },
      element("label", { for: "filter" }, "Filter "), this.filter,
      element("label", { for: "order" }, "Order "), order,
      problems, element("label", { for: "problems" }, " problems only"),
      element("span", { class: "small keys" }, "Keys: j and k move, Enter opens, / filters"),
    );
  }

  table() {
    const head = element("tr", {}, ...COLUMNS.map((name) => element("th", { scope: "col" }, name)));
    const made = element("table", { class: "autoscalers" }, element("caption", { class: "hidden" }, "All autoscalers"), element("thead", {}, head), this.body);
    return element("div", { class: "table" }, made);
  }

  async show() {
    this.update([...this.app.rows.values()]);
  }

  update(rows) {
    let isMoved = false;
    for (const row of rows) {
      const key = `${row.namespace}/${row.name}`;
      const view = this.views.get(key);
      if (view) {
        isMoved ||= view.row.severity !== row.severity || this.order !== "problems";
        view.update(row);
      } else {
        this.views.set(key, new RowView(row));
        isMoved = true;
      }
    }
    if (isMoved) this.arrange();
    this.showAges();
    this.summarize();
  }

  remove(key) {
    const view = this.views.get(`${key.namespace}/${key.name}`);
    if (!view) return;
    view.root.remove();
    this.views.delete(`${key.namespace}/${key.name}`);
    this.summarize();
  }

  /** The views that the filter leaves, in order. */
  shown() {
    const [, compare] = ORDERS[this.order];
    return [...this.views.values()].filter((view) => this.isShown(view.row)).sort((a, b) => compare(a.row, b.row));
  }

  isShown(row) {
    if (this.onlyProblems && row.severity < PROBLEM_SEVERITY) return false;
    const metrics = row.metrics.map((metric) => metric.name).join(" ");
    const text = `${row.namespace}/${row.name} ${row.state} ${row.target} ${metrics}`.toLowerCase();
    return this.words.every((word) => text.includes(word));
  }

  /** Put the rows in order; rows that are in their place stay untouched. */
  arrange() {
    const wanted = this.shown().map((view) => view.root);
    const kept = new Set(wanted);
    for (const root of [...this.body.children]) if (!kept.has(root)) root.remove();
    wanted.forEach((root, index) => {
      if (this.body.children[index] !== root) this.body.insertBefore(root, this.body.children[index] || null);
    });
  }

  showAges() {
    const now = this.app.now();
    for (const view of this.views.values()) view.showAge(now);
  }

  summarize() {
    const { listing } = this.app;
    const problems = [...this.views.values()].filter((view) => view.row.severity >= PROBLEM_SEVERITY).length;
    const counts = `${this.body.childElementCount} of ${this.views.size} autoscalers, ${problems} with problems`;
    const empty = this.views.size ? "" : " There is none that you may see.";
    this.summary.textContent = listing ? `${listing.cluster}: ${counts}.${empty} ${sinceText(listing)}` : counts;
  }

  filterChanged() {
    this.words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.arrange();
    this.summarize();
  }

  sortBy(order) {
    this.order = order;
    this.arrange();
  }

  problemsChanged(isOn) {
    this.onlyProblems = isOn;
    this.arrange();
    this.summarize();
  }

  key(event) {
    const isTyping = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
    if (event.key === "Escape" && event.target === this.filter) {
      this.filter.value = "";
      this.filterChanged();
      this.filter.blur();
    }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const links = [...this.body.querySelectorAll("th a")];
    const index = links.indexOf(document.activeElement);
    const act = {
      j: () => links[Math.min(index + 1, links.length - 1)]?.focus(),
      k: () => links[Math.max(index - 1, 0)]?.focus(),
      "/": () => this.filter.focus(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  close() {
    document.removeEventListener("keydown", this.onKey);
    clearInterval(this.timer);
  }
}

