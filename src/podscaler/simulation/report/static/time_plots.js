/*
 * Plots over time that share one zoom, drawn with uPlot.
 */

const PLOT_HEIGHT_PX = 190;
const Y_AXIS_PX = 54;
const DRAG_PX = 5;
const ZOOM_MIN_S = 30;
const TICKS_S = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000];

// ---- The zoom that all plots over time share ----

class SharedZoom {
  /** `from` and `to`: the whole span in seconds; `timeText` returns the text of an instant. */
  constructor(from, to, timeText = clock) {
    this.timeText = timeText;
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
    span.textContent = `${zoom.timeText(zoom.span.from)} to ${zoom.timeText(zoom.span.to)}`;
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

  /** One more line, after the plot was drawn; its values are aligned with the others. */
  addSeries(series) {
    const index = this.plot.series.length + 1;
    this.plot.series.push(series);
    const chip = this.legendButton(series, index);
    this.legend.push(chip);
    this.legend[index - 2].after(chip);
    this.chart.addSeries(lineOptions(series), index);
    const columns = [this.plot.atS, ...this.plot.series.map((each) => each.values)];
    if (this.plot.band) columns.push(this.plot.band.low, this.plot.band.high);
    this.chart.setData(columns, false);
    this.zoom.applyTo(this.chart);
  }

  options() {
    const { plot } = this;
    const size = plot.series.length;
    return {
      width: this.canvas.clientWidth || 600,
      height: PLOT_HEIGHT_PX,
      legend: { show: false },
      padding: [12, 28, 0, 0],
      scales: { x: { time: false }, y: { range: (chart, low, high) => yRange(low, high) } },
      axes: [
        axis({ incrs: TICKS_S, space: 80, values: (chart, ticks) => ticks.map(this.zoom.timeText) }),
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
    this.readout.textContent = `${this.zoom.timeText(second)}: ${values.join(", ")}`;
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
