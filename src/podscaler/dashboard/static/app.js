/*
 * The dashboard: chooses the page by the address (#/, #/NAMESPACE/NAME, #/reports, #/reports/NAME), logs in, keeps the
 * connection, and says what is wrong.
 *
 * Reading order: api.js (requests), list.js, detail.js, steps.js (the picture of a decision), what_if.js, reports.js.
 * The plots are those of reports (charts.js). A page is a class with `title`, `root` and `show`; `key` (the autoscaler
 * whose time line is streamed), `update`, `remove`, `timeline` and `close` are optional. A new page: a case in `makePage`.
 */

import charts from "./charts.js";
import { ApiError, ChangeStream, errorText, get, post, takeLoginToken } from "./api.js";
import { DetailPage } from "./detail.js";
import { ListPage } from "./list.js";
import { ReportPage, ReportsPage } from "./reports.js";

const { element } = charts;

class App {
  constructor() {
    this.root = document.getElementById("page");
    this.banner = document.getElementById("banner");
    this.rows = new Map();
    this.listing = null;
    this.page = null;
    this.notice = null;
    this.clockOffsetMs = 0;
    this.stream = new ChangeStream(
      {
        rows: (rows) => this.rowsChanged(rows),
        gone: (key) => this.rowRemoved(key),
        timeline: (change) => this.page && this.page.timeline && this.page.timeline(change),
        notice: (notice) => this.setNotice(notice),
      },
      (state, reason) => this.connectionChanged(state, reason),
    );
  }

  async begin() {
    this.header();
    window.addEventListener("hashchange", () => this.addressChanged());
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
    const token = takeLoginToken();
    if (token !== null) {
      await this.login(token);
      return;
    }
    await this.load();
    await this.route();
  }

  /** A hidden page has no stream: browsers open few connections to one server, which its other pages need. */
  visibilityChanged() {
    if (!this.page) return;
    if (document.hidden) this.stream.close();
    else this.stream.open(this.page.key || null);
  }

  /** Follow the address; a login link that was opened in this tab logs in. */
  async addressChanged() {
    const token = takeLoginToken();
    if (token === null) await this.route();
    else await this.login(token);
  }

  /** The server's clock: ages and ranges of time do not depend on this machine's. */
  now() {
    return Date.now() + this.clockOffsetMs;
  }

  header() {
    const theme = element("button", { type: "button", class: "theme" });
    const show = () => {
      theme.textContent = charts.isDark() ? "Light colours" : "Dark colours";
    };
    theme.addEventListener("click", () => charts.switchTheme());
    document.addEventListener("themechange", show);
    show();
    const links = [element("a", { href: "#/" }, "Autoscalers"), element("a", { href: "#/reports" }, "Reports")];
    this.connectionText = element("span", { class: "connection", id: "connection" }, "connecting");
    const made = element("header", { class: "top" }, element("strong", {}, "podscaler"), element("nav", { "aria-label": "Pages" }, ...links), this.connectionText, theme);
    document.body.insertBefore(made, this.banner);
  }

  /** Read all autoscalers; returns whether that worked. The pages show what is known, and errors are in the banner. */
  async load() {
    try {
      this.listing = await get("/api/autoscalers");
      this.rows = new Map(this.listing.rows.map((row) => [keyText(row), row]));
      this.clockOffsetMs = this.listing.now - Date.now();
      this.stream.lastId = String(this.listing.eventId ?? "");
      return true;
    } catch (error) {
      if (error.kind === "session") this.loggedOut(error);
      else this.showError(error);
      return false;
    }
  }

  async route() {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const parts = path.split("/").filter(Boolean).map(decoded);
    if (this.page && this.page.close) this.page.close();
    this.page = this.makePage(parts, new URLSearchParams(query));
    this.root.replaceChildren(this.page.root);
    document.title = `${this.page.title} · podscaler`;
    this.stream.open(this.page.key || null);
    this.root.focus({ preventScroll: true });
    await this.page.show();
  }

  makePage(parts, query) {
    if (parts[0] === "reports") return parts[1] ? new ReportPage(this, parts[1]) : new ReportsPage(this);
    if (parts.length >= 2) return new DetailPage(this, { namespace: parts[0], name: parts.slice(1).join("/") }, query);
    return new ListPage(this);
  }

  rowsChanged(rows) {
    for (const row of rows) this.rows.set(keyText(row), row);
    if (this.page && this.page.update) this.page.update(rows);
  }

  rowRemoved(key) {
    this.rows.delete(keyText(key));
    if (this.page && this.page.remove) this.page.remove(key);
  }

  setNotice(notice) {
    this.notice = notice.text ? notice : null;
    this.showBanner(this.notice ? this.notice.text : "", this.notice ? this.notice.level : "info");
  }

  /** The stream is `live` or `lost`; `reason` is the ApiError of a lost one, or null. */
  async connectionChanged(state, reason) {
    const wasLost = this.connectionText.textContent === "reconnecting";
    if (reason && reason.kind === "session") {
      this.loggedOut(reason);
      return;
    }
    this.connectionText.textContent = state === "live" ? "live" : "reconnecting";
    this.connectionText.className = `connection ${state}`;
    if (state === "lost") {
      const text = reason ? reason.message : "The connection to the dashboard's server was interrupted.";
      this.showBanner(`${text} Trying again; what you see may be old.`, "error");
    } else if (wasLost) {
      this.showBanner("", "info");
      if (await this.load()) await this.route();
    }
  }

  loggedOut(error) {
    this.stream.close();
    this.connectionText.textContent = "logged out";
    this.showBanner("", "info");
    this.root.replaceChildren(
      element("main", { class: "message" }, element("h1", {}, "Log in"), element("p", { role: "alert" }, error.message),
        element("p", {}, "Open the newest link that podscaler dashboard, or podscaler up, has printed. Each link logs in once; after a login the next one is printed."),
        this.loginForm()),
    );
  }

  /** For the token of a login link, or, where the server takes them, a bearer token of the cluster. */
  loginForm() {
    const field = element("input", { type: "password", name: "token", autocomplete: "off", required: true });
    const form = element("form", { class: "login" }, element("label", {}, "Token ", field), element("button", { type: "submit" }, "Log in"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.login(tokenOf(field.value.trim()));
    });
    return form;
  }

  async login(token) {
    try {
      await post("/login", { token });
    } catch (error) {
      this.loggedOut(error);
      return;
    }
    if (await this.load()) await this.route();
  }

  /** Show what failed in the banner, or the login if the session ended; rethrows errors that are no ApiErrors. */
  showError(error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.kind === "session") this.loggedOut(error);
    else this.showBanner(errorText(error), "error");
  }

  showBanner(text, level) {
    this.banner.className = level;
    this.banner.replaceChildren(...(text ? [element("p", {}, text)] : []));
  }
}

/** A part of the address without its escapes; as it is where these are damaged. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The token of what was typed: a token, or a whole login link. */
function tokenOf(text) {
  return text.includes("#token=") ? decoded(text.split("#token=")[1]) : text;
}

export function keyText(row) {
  return `${row.namespace}/${row.name}`;
}

const app = new App();
/** For measurements: rows as the stream sends them. */
window.streamed = (rows) => app.rowsChanged(rows);
app.begin();
