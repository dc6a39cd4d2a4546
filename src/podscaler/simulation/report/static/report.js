"use strict";

/*
 * Draws a report of podscaler.simulation.report into an element of a page.
 *
 * The content is the JSON form of ReportData (page_data.py), in the element #report-data; another page can call
 * podscalerReport.draw(data, root) with the same content. Texts of the content are only set as text, never as markup.
 *
 * Order of this file: texts of numbers, elements, colours, the zoom that all plots share, one plot, marks of decisions,
 * the list of decisions, the scatter plot, tables, the page.
 */
const podscalerReport = (() => {
  const PLOT_HEIGHT_PX = 190;
  const SCATTER_HEIGHT_PX = 320;
  const Y_AXIS_PX = 54;
  const CLICK_PX = 14;
  const DRAG_PX = 5;
  const ZOOM_MIN_S = 30;
  const OPEN_AUTOSCALERS = 3;
  const TICKS_S = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000];
  const NO_VALUE = "–";

  const KINDS = {
    up: { color: "green", name: "scaled up" },
    down: { color: "blue", name: "scaled down" },
    held: { color: "orange", name: "held by limits" },
    failed: { color: "red", name: "failed" },
    recovered: { color: "teal", name: "recovered" },
  };
  const FILTERS = [
    ["all decisions", Object.keys(KINDS)],
    ["changes of the scale", ["up", "down"]],
    ["held by limits", ["held"]],
    ["failures", ["failed", "recovered"]],
  ];
  const POINT_KINDS = {
    candidate: { color: "gray", name: "candidates", size: 5 },
    front: { color: "blue", name: "no candidate is better in both", size: 8 },
    present: { color: "orange", name: "present spec", size: 11 },
    chosen: { color: "green", name: "recommended", size: 11 },
  };

  // ---- Texts of numbers ----

  /** An instant, as `podscaler simulate` prints it: 12:15, or 1:02:15 with hours. */
  function clock(seconds) {
    const whole = Math.floor(seconds);
    const two = (part) => String(part).padStart(2, "0");
    const [hours, minutes, second] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const fraction = Math.round((seconds - whole) * 1000);
    const text = hours ? `${hours}:${two(minutes)}:${two(second)}` : `${minutes}:${two(second)}`;
    return fraction ? `${text}.${String(fraction).padStart(3, "0")}` : text;
  }

  function significant(value) {
    return value.toLocaleString("en", { maximumSignificantDigits: Math.abs(value) >= 1000 ? 7 : 4 });
  }

  /** A number without its unit, short enough for an axis; `bytes` have binary prefixes. */
  function amount(value, unit) {
    if (value === null || value === undefined) return NO_VALUE;
    const steps = unit === "bytes" ? [[2 ** 30, " Gi"], [2 ** 20, " Mi"], [2 ** 10, " Ki"]] : [[1e9, " G"], [1e6, " M"]];
    const step = steps.find(([size]) => Math.abs(value) >= size);
    return step ? significant(value / step[0]) + step[1] : significant(value);
  }

  function amountWithUnit(value, unit) {
    if (value === null || value === undefined || !unit) return amount(value, unit);
    return `${amount(value, unit)} ${unit === "bytes" ? "B" : unit}`;
  }

  function counted(count, noun) {
    return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
  }

  // ---- Elements ----

  /** A new element; `attributes` whose name begins with `on` are listeners, and children may be texts. */
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  let lastId = 0;

  function newId(prefix) {
    lastId += 1;
    return `${prefix}-${lastId}`;
  }

  // ---- Colours ----

  /** The present shade of a colour of report.css, such as `blue` or `plot-grid`. */
  function shade(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  }

  function translucent(name) {
    return `color-mix(in srgb, ${shade(name)} 18%, transparent)`;
  }

  function isDark() {
    const stated = document.documentElement.dataset.theme;
    return stated ? stated === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  // ---- The zoom that all plots over time share ----

  class SharedZoom {
    /** `from` and `to`: the whole span in seconds. */
    constructor(from, to) {
      this.whole = { from, to: Math.max(to, from + 1) };
      this.span = this.whole;
      this.charts = new Set();
      this.listeners = [];
    }

    set(from, to) {
      const whole = this.whole.to - this.whole.from;
      const length = Math.min(Math.max(to - from, Math.min(ZOOM_MIN_S, whole)), whole);
      const middle = (from + to) / 2;
      const begin = Math.min(Math.max(middle - length / 2, this.whole.from), this.whole.to - length);
      this.span = { from: begin, to: begin + length };
      for (const chart of this.charts) this.applyTo(chart);
      for (const listener of this.listeners) listener();
    }

    applyTo(chart) {
      chart.setScale("x", { min: this.span.from, max: this.span.to });
    }

    reset() {
      this.set(this.whole.from, this.whole.to);
    }

    /** Below 1 the span becomes shorter, above 1 longer. */
    scale(factor, around = (this.span.from + this.span.to) / 2) {
      const { from, to } = this.span;
      this.set(around - (around - from) * factor, around + (to - around) * factor);
    }

    /** Move by a share of the span; below 0 to earlier times. */
    move(share) {
      const { from, to } = this.span;
      const distance = Math.min(Math.max((to - from) * share, this.whole.from - from), this.whole.to - to);
      this.set(from + distance, to + distance);
    }

    include(second) {
      const { from, to } = this.span;
      if (second < from || second > to) this.set(second - (to - from) / 2, second + (to - from) / 2);
    }
  }

  function zoomButtons(zoom) {
    const span = element("output", { "aria-label": "Shown span" });
    const show = () => {
      span.textContent = `${clock(zoom.span.from)} to ${clock(zoom.span.to)}`;
    };
    zoom.listeners.push(show);
    show();
    const button = (text, label, act) => element("button", { type: "button", "aria-label": label, onclick: act }, text);
    return element(
      "div",
      { class: "zoom", role: "group", "aria-label": "Time span of all plots" },
      button("+", "Zoom in", () => zoom.scale(0.5)),
      button("−", "Zoom out", () => zoom.scale(2)),
      button("◀", "Earlier", () => zoom.move(-0.5)),
      button("▶", "Later", () => zoom.move(0.5)),
      button("Reset", "Reset zoom", () => zoom.reset()),
      span,
    );
  }

  // ---- One plot over time ----

  /** A plot: `figure` is its element; `chart` is made by `draw`, once the figure is in the page. */
  class TimePlotView {
    /** `marks`: the DecisionMarks of the autoscaler; null: the plot has none. */
    constructor(plot, zoom, marks) {
      this.plot = plot;
      this.zoom = zoom;
      this.marks = plot.hasDecisions ? marks : null;
      this.wasDragged = false;
      this.readout = element("p", { class: "hidden", "aria-live": "polite" });
      this.legend = plot.series.map((series, index) => this.legendButton(series, index + 1));
      this.canvas = element("div", {
        class: "canvas",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "plot",
        "aria-label": this.label(),
        onkeydown: (event) => this.key(event),
      });
      this.figure = this.figureElement();
    }

    label() {
      const lines = this.plot.series.map((series) => series.label).join(", ");
      const keys = "Left and right arrows move through time, plus and minus zoom, 0 resets";
      return `${this.plot.title}: ${lines}. ${keys}${this.marks ? ", Enter explains the nearest decision" : ""}.`;
    }

    figureElement() {
      const { title, unit, band, drawn } = this.plot;
      const heading = element("h3", {}, title, unit ? element("span", { class: "unit" }, ` ${unit}`) : "");
      const legend = element("div", { class: "legend", role: "group", "aria-label": `Lines of ${title}` }, ...this.legend);
      if (band) legend.append(element("span", { class: "chip" }, element("i", { class: "swatch band" }), band.label));
      const figure = element("figure", {}, element("figcaption", {}, heading, legend), this.canvas, this.readout);
      if (drawn) figure.append(element("p", { class: "small" }, drawnText(drawn)));
      return figure;
    }

    legendButton(series, index) {
      const value = element("span", { class: "value" });
      const look = series.isDashed ? "swatch dashed" : "swatch";
      return element(
        "button",
        {
          type: "button",
          class: "chip",
          "aria-pressed": "true",
          onclick: (event) => {
            const isShown = !this.chart.series[index].show;
            event.currentTarget.setAttribute("aria-pressed", String(isShown));
            this.chart.setSeries(index, { show: isShown });
          },
        },
        element("i", { class: `${look} ${series.color}` }),
        series.label,
        value,
      );
    }

    draw() {
      const { plot } = this;
      const columns = [plot.atS, ...plot.series.map((series) => series.values)];
      if (plot.band) columns.push(plot.band.low, plot.band.high);
      this.chart = new uPlot(this.options(), columns, this.canvas);
      this.zoom.charts.add(this.chart);
      this.zoom.applyTo(this.chart);
      keepWidth(this.chart, this.canvas, PLOT_HEIGHT_PX);
      if (this.marks) this.marks.listenTo(this);
    }

    options() {
      const { plot } = this;
      const size = plot.series.length;
      return {
        width: this.canvas.clientWidth || 600,
        height: PLOT_HEIGHT_PX,
        legend: { show: false },
        padding: [12, 12, 0, 0],
        scales: { x: { time: false }, y: { range: (chart, low, high) => yRange(low, high) } },
        axes: [
          axis({ incrs: TICKS_S, space: 80, values: (chart, ticks) => ticks.map(clock) }),
          axis({ size: Y_AXIS_PX, space: 36, values: (chart, ticks) => ticks.map((tick) => amount(tick, plot.unit)) }),
        ],
        series: [{}, ...plot.series.map(lineOptions), ...(plot.band ? [edgeOptions(), edgeOptions()] : [])],
        bands: plot.band ? [{ series: [size + 2, size + 1], fill: () => translucent("gray") }] : [],
        cursor: {
          y: false,
          drag: { x: true, y: false, setScale: false, dist: DRAG_PX, click: (chart, event) => this.afterDrag(event) },
          bind: { dblclick: () => () => this.zoom.reset() },
          sync: { key: "time", setSeries: false, filters: { pub: (type) => type === "mousemove" } },
        },
        hooks: {
          setSelect: [(chart) => this.zoomToSelection(chart)],
          setCursor: [(chart) => this.showValues(chart)],
          draw: [(chart) => this.marks && this.marks.draw(chart)],
        },
      };
    }

    zoomToSelection(chart) {
      const { left, width } = chart.select;
      if (!width) return;
      this.wasDragged = true;
      const [from, to] = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
      chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      this.zoom.set(from, to);
    }

    /** A click that ends a drag is no click on a mark. */
    afterDrag(event) {
      if (this.wasDragged) event.stopImmediatePropagation();
      this.wasDragged = false;
    }

    showValues(chart) {
      const { idx } = chart.cursor;
      this.plot.series.forEach((series, index) => {
        const text = idx === null || idx === undefined ? "" : amount(series.values[idx], this.plot.unit);
        this.legend[index].querySelector(".value").textContent = text;
      });
    }

    key(event) {
      const act = {
        ArrowLeft: () => this.step(-1),
        ArrowRight: () => this.step(1),
        Home: () => this.moveTo(0),
        End: () => this.moveTo(this.plot.atS.length - 1),
        "+": () => this.zoom.scale(0.5, this.second()),
        "=": () => this.zoom.scale(0.5, this.second()),
        "-": () => this.zoom.scale(2, this.second()),
        0: () => this.zoom.reset(),
        Escape: () => this.zoom.reset(),
        Enter: () => this.marks && this.marks.selectNearest(this.second()),
      }[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      act();
    }

    second() {
      const { idx } = this.chart.cursor;
      return idx === null || idx === undefined ? (this.zoom.span.from + this.zoom.span.to) / 2 : this.plot.atS[idx];
    }

    step(count) {
      const { idx } = this.chart.cursor;
      const from = idx === null || idx === undefined ? this.chart.valToIdx(this.second()) : idx + count;
      this.moveTo(Math.min(Math.max(from, 0), this.plot.atS.length - 1));
    }

    moveTo(index) {
      const second = this.plot.atS[index];
      this.showSecond(second);
      const values = this.plot.series.map((series) => `${series.label} ${amountWithUnit(series.values[index], this.plot.unit)}`);
      this.readout.textContent = `${clock(second)}: ${values.join(", ")}`;
    }

    /** Put the cursors of all plots at an instant. */
    showSecond(second) {
      this.zoom.include(second);
      this.chart.setCursor({ left: this.chart.valToPos(second, "x"), top: 1 }, true, true);
    }
  }

  function drawnText(drawn) {
    const kept = drawn.everyChange
      ? "every change of a count, and the highest and lowest values of the others, are among them"
      : "the highest and lowest values are among them";
    return `${counted(drawn.drawn, "sync")} of ${drawn.total.toLocaleString("en")} are drawn: ${kept}.`;
  }

  function yRange(low, high) {
    const from = Math.min(low ?? 0, 0);
    const to = Math.max(high ?? 1, 0);
    return [from, to > from ? to + (to - from) * 0.1 : from + 1];
  }

  function axis(more) {
    const line = { stroke: () => shade("plot-grid"), width: 1 };
    return { stroke: () => shade("muted"), grid: line, ticks: { ...line, size: 4 }, ...more };
  }

  function lineOptions(series) {
    return {
      label: series.label,
      stroke: () => shade(series.color),
      fill: series.isFilled ? () => translucent(series.color) : undefined,
      width: 2,
      dash: series.isDashed ? [6, 4] : undefined,
      paths: uPlot.paths.stepped({ align: 1 }),
      points: { show: false },
    };
  }

  /** The edges of a band have no line of their own. */
  function edgeOptions() {
    return { stroke: "transparent", width: 0, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } };
  }

  function keepWidth(chart, container, height) {
    new ResizeObserver(() => {
      if (container.clientWidth) chart.setSize({ width: container.clientWidth, height });
    }).observe(container);
  }

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
    constructor(part) {
      this.part = part;
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
        element("span", { class: "at" }, clock(decision.atS)),
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
      this.explanation.replaceChildren(...explanationElements(decision));
      this.explanation.scrollTop = 0;
      this.marks.show(decision);
      showInWindow(this.explanation);
    }
  }

  function change(decision) {
    if (decision.kind === "up" || decision.kind === "down") return `${decision.before} → ${decision.after}`;
    if (decision.kind === "held") return `${decision.after}, wanted ${decision.wanted ?? NO_VALUE}`;
    return `at ${decision.after}`;
  }

  function explanationElements(decision) {
    const elements = [element("h4", {}, `At ${clock(decision.atS)}`), element("p", {}, decision.summary)];
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

  // ---- The scatter plot ----

  class ScatterView {
    constructor(scatter) {
      this.scatter = scatter;
      this.points = scatter.points.filter((point) => point.x !== null && point.y !== null).sort((a, b) => a.x - b.x);
      this.selected = null;
      this.details = element("section", { class: "explanation", "aria-label": "Selected candidate", "aria-live": "polite" });
      this.details.append(element("p", { class: "small" }, "Select a point to see its candidate."));
      const keys = "Left and right arrows move from point to point.";
      this.canvas = element("div", {
        class: "canvas",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "plot",
        "aria-label": `${scatter.title}: ${scatter.yLabel} by ${scatter.xLabel}, ${counted(this.points.length, "candidate")}. ${keys}`,
        onkeydown: (event) => this.key(event),
      });
      this.figure = this.figureElement();
    }

    kinds() {
      return Object.keys(POINT_KINDS).filter((kind) => this.points.some((point) => point.kind === kind));
    }

    figureElement() {
      const chips = this.kinds().map((kind) => {
        const { color, name } = POINT_KINDS[kind];
        return element("span", { class: "chip" }, element("i", { class: `swatch dot ${color}` }), name);
      });
      const { title, xLabel, yLabel } = this.scatter;
      const axes = element("p", { class: "small" }, `Across: ${xLabel}. Up: ${yLabel}.`);
      const caption = element("figcaption", {}, element("h3", {}, title), element("div", { class: "legend" }, ...chips), axes);
      return element("figure", { class: "scatter" }, caption, this.canvas, this.details);
    }

    draw() {
      const kinds = this.kinds();
      const column = (kind) => this.points.map((point) => (point.kind === kind ? point.y : null));
      const columns = [this.points.map((point) => point.x), ...kinds.map(column)];
      const values = (chart, ticks) => ticks.map((tick) => amount(tick, ""));
      this.chart = new uPlot(
        {
          width: this.canvas.clientWidth || 600,
          height: SCATTER_HEIGHT_PX,
          legend: { show: false },
          padding: [12, 16, 0, 0],
          scales: { x: { time: false, range: (chart, low, high) => padded(low, high) }, y: { range: (chart, low, high) => padded(low, high) } },
          axes: [axis({ values }), axis({ size: Y_AXIS_PX, values })],
          series: [{}, ...kinds.map(pointOptions)],
          cursor: { points: { show: false }, drag: { x: false, y: false } },
          hooks: { draw: [(chart) => this.drawSelected(chart)] },
        },
        columns,
        this.canvas,
      );
      keepWidth(this.chart, this.canvas, SCATTER_HEIGHT_PX);
      this.chart.over.addEventListener("click", (event) => this.click(event));
    }

    click(event) {
      const box = this.chart.over.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      const distance = (point) => Math.hypot(this.chart.valToPos(point.x, "x") - x, this.chart.valToPos(point.y, "y") - y);
      const found = nearest(this.points, distance, CLICK_PX);
      if (found) this.select(found);
    }

    key(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || !this.points.length) return;
      event.preventDefault();
      const index = this.selected === null ? 0 : this.points.indexOf(this.selected) + step;
      this.select(this.points[Math.min(Math.max(index, 0), this.points.length - 1)]);
    }

    select(point) {
      this.selected = point;
      const { xLabel, yLabel } = this.scatter;
      const place = `${xLabel}: ${amount(point.x, "")}; ${yLabel}: ${amount(point.y, "")}`;
      const lines = point.lines.map((line) => element("p", {}, line));
      this.details.replaceChildren(element("h4", {}, point.label), element("p", {}, place), ...lines);
      this.chart.redraw(false);
    }

    drawSelected(chart) {
      if (this.selected === null) return;
      const { ctx } = chart;
      ctx.beginPath();
      ctx.arc(chart.valToPos(this.selected.x, "x", true), chart.valToPos(this.selected.y, "y", true), 9 * uPlot.pxRatio, 0, 2 * Math.PI);
      ctx.strokeStyle = shade("ink");
      ctx.lineWidth = 2 * uPlot.pxRatio;
      ctx.stroke();
    }
  }

  function padded(low, high) {
    const [from, to] = [low ?? 0, high ?? 1];
    const pad = (to - from || Math.abs(to) || 1) * 0.06;
    return [from - pad, to + pad];
  }

  function pointOptions(kind) {
    const { color, size } = POINT_KINDS[kind];
    const fill = () => shade(color);
    return { stroke: fill, paths: () => null, points: { show: true, size, width: 1, stroke: fill, fill } };
  }

  // ---- Tables ----

  function tableElement(table) {
    const cell = (text, index) => (index ? element("td", {}, text) : element("th", { scope: "row" }, text));
    const head = element("tr", {}, ...table.columns.map((column) => element("th", { scope: "col" }, column)));
    const rows = table.rows.map((row) => element("tr", {}, ...row.map(cell)));
    const made = element("table", {}, element("caption", {}, table.title), element("thead", {}, head), element("tbody", {}, ...rows));
    return element("div", { class: "table", tabindex: "0", role: "region", "aria-label": table.title }, made);
  }

  function expectationsElement(expectations) {
    const items = expectations.map((each) =>
      element(
        "li",
        { class: each.failure ? "missed" : "met" },
        element("strong", {}, each.failure ? "✗ missed: " : "✓ met: "),
        each.failure || each.expected,
      ),
    );
    return element("section", { "aria-label": "Expectations" }, element("h2", {}, "Expectations"), element("ul", { class: "expectations" }, ...items));
  }

  // ---- The page ----

  /** The whole span of all plots, in seconds. */
  function wholeSpan(data) {
    const plots = [...data.plots, ...data.autoscalers.flatMap((part) => part.plots)].filter((plot) => plot.atS.length);
    if (!plots.length) return null;
    return [Math.min(...plots.map((plot) => plot.atS[0])), Math.max(...plots.map((plot) => plot.atS[plot.atS.length - 1]))];
  }

  function header(data) {
    const theme = element("button", { type: "button", class: "theme" });
    const show = () => {
      theme.textContent = isDark() ? "Light colours" : "Dark colours";
    };
    theme.addEventListener("click", () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      document.dispatchEvent(new Event("themechange"));
    });
    document.addEventListener("themechange", show);
    show();
    const made = element("header", {}, element("h1", {}, data.title), theme);
    for (const note of data.notes) made.append(element("p", {}, note));
    if (data.startNs !== null) made.append(element("p", { class: "small" }, `0:00 is ${startText(data.startNs)}.`));
    return made;
  }

  function startText(startNs) {
    return new Date(startNs / 1e6).toISOString().replace(".000Z", "Z");
  }

  /** An autoscaler: its plots, and beside them, or below the replicas on a narrow page, its decisions. */
  function autoscalerElement(part, zoom, views, isOpen) {
    const body = element("div", { class: "columns" });
    const title = element("h2", {}, part.autoscaler);
    const fill = () => {
      if (body.childElementCount) return;
      const decisions = new DecisionPanel(part);
      const own = part.plots.map((plot) => new TimePlotView(plot, zoom, decisions.marks));
      for (const view of own) {
        body.append(view.figure);
        if (view.marks) body.append(decisions.panel);
      }
      views.push(...own);
      own.forEach((view) => view.draw());
    };
    const details = element("details", { class: "autoscaler", open: isOpen, ontoggle: () => details.open && fill() });
    details.append(element("summary", {}, title, element("span", { class: "small" }, `scales ${part.workload}`)), body);
    return { section: details, fill };
  }

  function redrawOnNewColors(views) {
    const redraw = () => views.forEach((view) => view.chart.redraw(false));
    document.addEventListener("themechange", redraw);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      document.dispatchEvent(new Event("themechange"));
    });
  }

  /** Draw a report into an element. `data` is the JSON form of ReportData. */
  function draw(data, root) {
    const main = element("main");
    root.replaceChildren(header(data), main);
    if (data.expectations.length) main.append(expectationsElement(data.expectations));
    main.append(...data.tables.map(tableElement));
    const views = [];
    if (data.scatter) {
      const scatter = new ScatterView(data.scatter);
      main.append(scatter.figure);
      scatter.draw();
      views.push(scatter);
    }
    const span = wholeSpan(data);
    if (span) drawTimes(data, main, new SharedZoom(...span), views);
    redrawOnNewColors(views);
  }

  function drawTimes(data, main, zoom, views) {
    main.append(zoomButtons(zoom));
    const compared = data.plots.map((plot) => new TimePlotView(plot, zoom, null));
    if (compared.length) {
      const figures = element("section", { "aria-label": "Comparison" }, element("h2", {}, "Comparison"), ...compared.map((view) => view.figure));
      main.append(figures);
      compared.forEach((view) => view.draw());
      views.push(...compared);
    }
    data.autoscalers.forEach((part, index) => {
      const { section, fill } = autoscalerElement(part, zoom, views, index < OPEN_AUTOSCALERS);
      main.append(section);
      if (section.open) fill();
    });
  }

  const island = document.getElementById("report-data");
  if (island) draw(JSON.parse(island.textContent), document.getElementById("report"));
  return { draw };
})();
