/*
 * A report as a page: tables, expectations, the scatter plot of candidates, plots, and the autoscalers with their decisions.
 *
 * The content is the JSON form of ReportData (page_data.py), in the element #report-data; another page calls `draw` with
 * the same content.
 */

const SCATTER_HEIGHT_PX = 320;
const OPEN_AUTOSCALERS = 3;
const POINT_KINDS = {
  candidate: { color: "gray", name: "candidates", size: 5 },
  front: { color: "blue", name: "no candidate is better in both", size: 8 },
  present: { color: "orange", name: "present spec", size: 11 },
  chosen: { color: "green", name: "recommended", size: 11 },
};

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
  theme.addEventListener("click", switchTheme);
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
