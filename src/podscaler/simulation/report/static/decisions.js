/*
 * The decisions of an autoscaler: their marks in the plot of replicas, their list, and the explanation of the selected one.
 */

const CLICK_PX = 14;
const KINDS = {
  up: { color: "green", name: "scaled up" },
  down: { color: "blue", name: "scaled down" },
  held: { color: "orange", name: "held by limits" },
  failed: { color: "red", name: "failed" },
  recovered: { color: "teal", name: "recovered" },
  same: { color: "gray", name: "unchanged" },
};
const FILTERS = [
  ["all decisions", Object.keys(KINDS)],
  ["changes of the scale", ["up", "down"]],
  ["held by limits", ["held"]],
  ["failures", ["failed", "recovered"]],
];

// ---- Marks of decisions in a plot ----

class DecisionMarks {
  /** `onSelect` is called with a decision when a mark is clicked. */
  constructor(decisions, onSelect) {
    this.decisions = decisions;
    this.onSelect = onSelect;
    this.selected = null;
  }

  listenTo(view) {
    this.view = view;
    const { over } = view.chart;
    over.addEventListener("click", (event) => {
      const found = this.at(event);
      if (found) this.onSelect(found);
    });
    over.addEventListener("mousemove", (event) => over.classList.toggle("on-mark", this.at(event) !== null));
  }

  /** The decision whose mark is nearest to the pointer and within reach; null: there is none. */
  at(event) {
    const { chart } = this.view;
    const box = chart.over.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const distance = (each) => Math.hypot(chart.valToPos(each.atS, "x") - x, chart.valToPos(each.after, "y") - y);
    return nearest(this.decisions, distance, CLICK_PX);
  }

  selectNearest(second) {
    const found = nearest(this.decisions, (each) => Math.abs(each.atS - second), Infinity);
    if (found) this.onSelect(found);
  }

  show(decision) {
    this.selected = decision;
    this.view.showSecond(decision.atS);
    this.view.chart.redraw(false);
  }

  draw(chart) {
    const { left, top, width, height } = chart.bbox;
    const { ctx } = chart;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left - 10, 0, width + 20, top + height + 10);
    ctx.clip();
    for (const each of this.decisions) {
      if (each.atS >= chart.scales.x.min && each.atS <= chart.scales.x.max) this.drawMark(chart, each);
    }
    ctx.restore();
  }

  drawMark(chart, decision) {
    const { ctx } = chart;
    const isSelected = decision === this.selected;
    const size = (isSelected ? 7 : 5) * uPlot.pxRatio;
    const [x, y] = [chart.valToPos(decision.atS, "x", true), chart.valToPos(decision.after, "y", true)];
    ctx.beginPath();
    markPath(ctx, decision.kind, x, y, size);
    ctx.fillStyle = shade(KINDS[decision.kind].color);
    ctx.strokeStyle = shade(isSelected ? "ink" : "page");
    ctx.lineWidth = (isSelected ? 2 : 1) * uPlot.pxRatio;
    ctx.fill();
    ctx.stroke();
  }
}

/** Each kind has its own shape: triangles, a diamond, a square, a circle. */
function markPath(ctx, kind, x, y, size) {
  const corners = {
    up: [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]],
    down: [[0, 1.2], [1.1, -0.8], [-1.1, -0.8]],
    held: [[0, -1.1], [1.1, 0], [0, 1.1], [-1.1, 0]],
    failed: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  }[kind];
  if (!corners) {
    ctx.arc(x, y, size, 0, 2 * Math.PI);
    return;
  }
  corners.forEach(([right, down], index) => ctx[index ? "lineTo" : "moveTo"](x + right * size, y + down * size));
  ctx.closePath();
}

/** The item with the least distance; null where none is within the bound. */
function nearest(items, distance, bound) {
  let [found, least] = [null, bound];
  for (const each of items) {
    const reach = distance(each);
    if (reach < least) [found, least] = [each, reach];
  }
  return found;
}

// ---- The list of decisions, and the explanation of the selected one ----

class DecisionPanel {
  /** `part`: an autoscaler of ReportData; `timeText` returns the text of an instant. */
  constructor(part, timeText = clock) {
    this.part = part;
    this.timeText = timeText;
    this.marks = new DecisionMarks(part.decisions, (decision) => this.select(decision));
    this.options = new Map(part.decisions.map((decision) => [decision, this.option(decision)]));
    this.list = element(
      "div",
      {
        class: "decisions",
        role: "listbox",
        "aria-label": `Decisions of ${part.autoscaler}`,
        onkeydown: (event) => this.key(event),
      },
      ...this.options.values(),
    );
    this.explanation = element(
      "section",
      { class: "explanation", "aria-label": "Explanation", "aria-live": "polite", tabindex: "0" },
      element("p", { class: "small" }, "Select a decision in the list, or its mark in the plot of replicas."),
    );
    this.panel = this.panelElement();
    this.makeReachable(this.shown()[0]);
  }

  panelElement() {
    const { decisions, decisionsTotal } = this.part;
    const panel = element("section", { class: "panel", "aria-label": `Explained decisions of ${this.part.autoscaler}` });
    panel.append(element("h3", {}, "Decisions"));
    if (!decisions.length) {
      panel.append(element("p", { class: "small" }, "Nothing changed."));
      return panel;
    }
    if (decisionsTotal > decisions.length) {
      const text = `The ${counted(decisions.length, "largest decision")} of ${decisionsTotal.toLocaleString("en")} are here.`;
      panel.append(element("p", { class: "small" }, text));
    }
    panel.append(this.filter(), this.list, this.explanation);
    return panel;
  }

  filter() {
    const id = newId("filter");
    const choices = FILTERS.map(([name], index) => element("option", { value: index }, name));
    const select = element("select", { id, onchange: () => this.showKinds(FILTERS[select.value][1]) }, ...choices);
    return element("p", { class: "filter" }, element("label", { for: id }, "Show "), select);
  }

  option(decision) {
    const kind = KINDS[decision.kind];
    const option = element(
      "div",
      { role: "option", id: newId("decision"), "aria-selected": "false", tabindex: "-1" },
      element("span", { class: "at" }, this.timeText(decision.atS)),
      element("i", { class: `mark ${decision.kind}`, "aria-hidden": "true" }),
      element("span", {}, `${kind.name}: ${change(decision)}`),
    );
    option.addEventListener("click", () => {
      this.select(decision);
      option.focus();
    });
    return option;
  }

  /** The decisions that the filter leaves, in order. */
  shown() {
    return this.part.decisions.filter((decision) => !this.options.get(decision).hidden);
  }

  showKinds(kinds) {
    for (const [decision, option] of this.options) option.hidden = !kinds.includes(decision.kind);
    this.makeReachable(this.shown()[0]);
  }

  /** The list is one stop of the Tab key: one option can be reached, and arrows lead to the others. */
  makeReachable(decision) {
    for (const option of this.options.values()) option.tabIndex = -1;
    if (decision) this.options.get(decision).tabIndex = 0;
  }

  key(event) {
    const shown = this.shown();
    const index = shown.findIndex((decision) => this.options.get(decision) === document.activeElement);
    const target = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: shown.length - 1 }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (index >= 0) this.select(shown[index]);
    } else if (target !== undefined) {
      event.preventDefault();
      const decision = shown[Math.min(Math.max(target, 0), shown.length - 1)];
      if (!decision) return;
      this.makeReachable(decision);
      this.options.get(decision).focus();
    }
  }

  select(decision) {
    for (const [each, option] of this.options) option.setAttribute("aria-selected", String(each === decision));
    this.makeReachable(decision);
    scrollWithin(this.list, this.options.get(decision));
    this.explanation.replaceChildren(...explanationElements(decision, this.timeText));
    this.explanation.scrollTop = 0;
    this.marks.show(decision);
    showInWindow(this.explanation);
  }
}

function change(decision) {
  if (decision.kind === "up" || decision.kind === "down") return `${decision.before} → ${decision.after}`;
  if (decision.kind === "held" && decision.wanted !== null) return `${decision.after}, wanted ${decision.wanted}`;
  return decision.after === null ? "not decided" : `at ${decision.after}`;
}

function explanationElements(decision, timeText) {
  const elements = [element("h4", {}, `At ${timeText(decision.atS)}`), element("p", {}, decision.summary)];
  for (const each of decision.advice) elements.push(element("p", { class: "advice" }, `To do: ${each}.`));
  for (const section of decision.sections) {
    const lines = section.lines.flatMap((line) => [element("dt", {}, line.label), element("dd", {}, line.text)]);
    elements.push(element("h5", {}, section.title), element("dl", {}, ...lines));
  }
  return elements;
}

/** Scroll a list, and not the page, until the item is visible. */
function scrollWithin(list, item) {
  const [outer, inner] = [list.getBoundingClientRect(), item.getBoundingClientRect()];
  if (inner.top < outer.top) list.scrollTop -= outer.top - inner.top;
  else if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom;
}

/** Scroll the page where an element is not visible at all, as on a phone. */
function showInWindow(shown) {
  const box = shown.getBoundingClientRect();
  if (box.top > window.innerHeight - 80 || box.bottom < 80) shown.scrollIntoView({ block: "center" });
}
