/*
 * The pages of reports of simulations and backtests (`--reports DIR`): the list, and one report, drawn as in its own
 * file. app.js makes them and calls `show`.
 */

import charts from "./charts.js";
import { errorText, get } from "./api.js";

const { element } = charts;

export class ReportsPage {
  constructor(app) {
    this.app = app;
    this.title = "Reports";
    this.list = element("div");
    this.root = element("main", {}, element("h1", {}, "Reports"), this.list);
  }

  async show() {
    try {
      const { reports } = await get("/api/reports");
      const items = reports.map((each) =>
        element("li", {}, element("a", { href: `#/reports/${encodeURIComponent(each.name)}` }, each.name), element("span", { class: "small" }, ` ${new Date(each.at).toLocaleString()}`)),
      );
      const none = "There is none. podscaler simulate, backtest and tune write them with --report; podscaler dashboard --reports DIR shows those of a folder.";
      this.list.replaceChildren(items.length ? element("ul", {}, ...items) : element("p", {}, none));
    } catch (error) {
      if (error.kind === "session") this.app.showError(error);
      else this.list.replaceChildren(element("p", { class: "error" }, errorText(error)));
    }
  }
}

export class ReportPage {
  constructor(app, name) {
    this.app = app;
    this.name = name;
    this.title = name;
    this.root = element("div", { class: "report" }, element("p", { class: "small" }, "Reading the report …"));
  }

  async show() {
    try {
      charts.drawReport(await get(`/api/reports/${encodeURIComponent(this.name)}`), this.root);
    } catch (error) {
      if (error.kind === "session") this.app.showError(error);
      else this.root.replaceChildren(element("main", {}, element("p", { class: "error" }, errorText(error)), element("a", { href: "#/reports" }, "All reports")));
    }
  }
}
