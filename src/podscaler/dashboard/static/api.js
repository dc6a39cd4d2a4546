/*
 * Requests to the dashboard's server, and the stream of changes.
 *
 * A failed request is thrown as an ApiError, whose `kind` says what the page does about it: `session` (log in again),
 * `forbidden`, `gone`, `bad` (the request), `unavailable` (try again after `retryMs`).
 */

const ERROR_KINDS = { 400: "bad", 401: "session", 403: "forbidden", 404: "gone", 410: "gone" };
const RETRY_FIRST_MS = 1000;
const RETRY_MAX_MS = 30000;

/** A failed request; `retryMs`: when it may be repeated (null: not known); `needs`: the missing permission, or empty. */
export class ApiError extends Error {
  constructor(kind, text, retryMs = null, needs = "") {
    super(text);
    this.kind = kind;
    this.retryMs = retryMs;
    this.needs = needs;
  }
}

/** What failed, and what it needs, in words. */
export function errorText(error) {
  return error.needs ? `${error.message} (it needs: ${error.needs})` : error.message;
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new ApiError("unavailable", "The dashboard's server does not answer. It may have ended, or the connection is lost.");
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body !== null) return body;
  const text = body && body.error ? body.error : `The server answered with status ${response.status}.`;
  throw new ApiError(ERROR_KINDS[response.status] || "unavailable", text, body && body.retryMs, (body && body.needs) || "");
}

/** The JSON of a GET request; empty values of the query are left out. Throws ApiError. */
export function get(path, query = {}) {
  const present = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(present).toString();
  return request(text ? `${path}?${text}` : path, {});
}

export function post(path, body) {
  return request(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

export function autoscalerPath(key, ...rest) {
  return ["/api/autoscalers", key.namespace, key.name, ...rest].map((part, index) => (index ? encodeURIComponent(part) : part)).join("/");
}

/** The one-time token of the login link, taken out of the address so that it is not kept in the history. */
export function takeLoginToken() {
  const match = /(?:^|[?#&])token=([^&]+)/.exec(location.hash || location.search);
  if (!match) return null;
  history.replaceState(null, "", "/");
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return match[1];
  }
}

/** The delay before attempt number `attempt` (from 0): it doubles up to a bound, and varies by a quarter at random. */
export function retryDelayMs(attempt, random = Math.random()) {
  return Math.min(RETRY_FIRST_MS * 2 ** attempt, RETRY_MAX_MS) * (0.75 + random / 2);
}

/**
 * The stream of changes. `handlers` has a function for each event name of the server. It reconnects by itself; `onState`
 * is called with `live`, or with `lost` and the ApiError of a plain request (null if that works).
 */
export class ChangeStream {
  constructor(handlers, onState) {
    this.handlers = handlers;
    this.onState = onState;
    this.attempt = 0;
    this.lastId = "";
    this.query = {};
    this.source = null;
    this.timer = null;
  }

  /** Begin, or begin again with another autoscaler whose time line is followed (null: none). */
  open(key) {
    const after = this.lastId ? { after: this.lastId } : {};
    this.query = key ? { namespace: key.namespace, name: key.name, ...after } : after;
    this.close();
    const text = new URLSearchParams(this.query).toString();
    const source = new EventSource(text ? `/api/stream?${text}` : "/api/stream");
    this.source = source;
    source.addEventListener("open", () => {
      this.attempt = 0;
      this.onState("live", null);
    });
    source.addEventListener("error", () => this.failed(key));
    for (const [name, handler] of Object.entries(this.handlers)) {
      source.addEventListener(name, (event) => {
        this.lastId = event.lastEventId || this.lastId;
        handler(JSON.parse(event.data));
      });
    }
  }

  close() {
    clearTimeout(this.timer);
    if (this.source) this.source.close();
    this.source = null;
  }

  /** Reconnect later. EventSource does not have the status of a failed request: a plain request finds it out. */
  async failed(key) {
    this.close();
    const delayMs = retryDelayMs(this.attempt);
    this.attempt += 1;
    let reason = null;
    try {
      await get("/api/autoscalers");
    } catch (error) {
      reason = error;
    }
    this.onState("lost", reason);
    if (reason && reason.kind === "session") return;
    this.timer = setTimeout(() => this.open(key), delayMs);
  }
}
