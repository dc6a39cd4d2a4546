/*
 * Texts of numbers, new elements, and the colours of report.css, for all parts of a report.
 *
 * html_page joins elements.js, time_plots.js, decisions.js and report.js, in this order, into one function; the dashboard
 * loads them as scripts, in the same order. Each part uses the names of those before it. Texts of the content are only
 * set as text, never as markup.
 */

const NO_VALUE = "–";

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

/** Change between light and dark; plots draw themselves again on the event `themechange`. */
function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  document.dispatchEvent(new Event("themechange"));
}
