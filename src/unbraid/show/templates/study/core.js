// What every part of the page shares: the data, which runs are shown, elements, numbers as text.
// Text from the data only ever becomes text nodes and attributes; nothing here builds markup from strings.
const embedded = (id) => JSON.parse(document.getElementById(id).textContent);
const byId = (id) => document.getElementById(id);
const NAMES = ["run", "family", "setting", "seed", "state", "reason"];
const study = embedded("study");
const columns = new Map(study.columns.map((column) => [column.id, column]));
const families = [...new Set(study.settings.map((each) => each.family))].sort(); // colours follow this order, as in unbraid.show

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
const make = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);
const draw = (tag, properties = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);

// Three decimals, or the magnitude where three decimals would hide it; numbers of whole columns as they are.
function numberText(value, whole = false) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  const size = Math.abs(value);
  let text;
  if (whole && size < 1e6) text = String(value);
  else if (size >= 1e5 || (size > 0 && size < 0.0005)) text = value.toExponential(2);
  else text = value.toFixed(size >= 1000 ? 0 : size >= 100 ? 1 : 3);
  return text.replace(/-/g, "\u2212");
}

const settingText = (setting) => setting || "as published";
const runText = (run) => `${study.runs.family[run]}${study.runs.setting[run] ? " " + study.runs.setting[run] : ""}, seed ${study.runs.seed[run] ?? "–"}`;
const shortName = (name) => /^[0-9a-f]{12,}$/.test(name) ? name.slice(0, 8) : name;
const valueOf = (run, key) => NAMES.includes(key) ? study.runs[key][run] : study.values[key]?.[run] ?? null;
const valueText = (run, key) => numberText(valueOf(run, key), columns.get(key)?.whole);
const labelOf = (key) => columns.get(key)?.label ?? key;
const numeric = () => study.columns.filter((column) => column.number);
const marker = (family) => families.indexOf(family) % 6;
const swatch = (family) => make("i", { class: `swatch c${marker(family)}`, "aria-hidden": "true" });

// Which runs are shown: one filter for the whole page.
const filters = { family: "", setting: "", state: "", words: "" };
const listeners = [];
let shownRuns = null;

function shown() {
  if (shownRuns) return shownRuns;
  const { run, family, setting, state } = study.runs;
  const words = filters.words.toLowerCase().split(/\s+/).filter(Boolean);
  shownRuns = run.map((_, index) => index).filter((index) => {
    if (filters.family && family[index] !== filters.family) return false;
    if (filters.setting && setting[index] !== JSON.parse(filters.setting)) return false;
    if (filters.state && state[index] !== filters.state) return false;
    const text = words.length ? NAMES.map((name) => study.runs[name][index]).join(" ").toLowerCase() : "";
    return words.every((word) => text.includes(word));
  });
  return shownRuns;
}

function changed() {
  shownRuns = null;
  for (const listener of listeners) listener();
}

function whenChanged(listener) {
  listeners.push(listener);
  listener();
}

const firstColumn = () => (study.columns.find((column) => column.headline && column.number) ?? numeric()[0])?.id ?? "";
const hideWithout = (section, count) => { byId(section).hidden = numeric().length < count; };

function option(value, text, chosen) {
  return make("option", { value, selected: value === chosen }, text);
}

// A <select> of columns by group; `keep` says which columns are offered.
function offerColumns(select, chosen, keep = (column) => column.number) {
  const groups = study.groups.map(([group, title]) => {
    const members = study.columns.filter((column) => column.group === group && keep(column));
    return members.length ? make("optgroup", { label: title }, ...members.map((column) => option(column.id, column.label, chosen))) : null;
  });
  select.replaceChildren(...groups.filter(Boolean));
  return select.value;
}

function setUpFilters() {
  const { family, setting, state, words } = byId("filters").elements;
  const count = byId("filter-count"), reset = byId("filter-reset");
  const offer = () => {
    family.replaceChildren(option("", "All families", filters.family), ...families.map((name) => option(name, name, filters.family)));
    const of = study.settings.filter((each) => !filters.family || each.family === filters.family);
    const names = [...new Set(of.map((each) => each.setting))];
    if (filters.setting && !names.includes(JSON.parse(filters.setting))) filters.setting = "";
    setting.replaceChildren(option("", "All settings", filters.setting), ...names.map((name) => option(JSON.stringify(name), settingText(name), filters.setting)));
    const states = [...new Set(study.runs.state)];
    state.replaceChildren(option("", "All states", filters.state), ...states.map((name) => option(name, name, filters.state)));
  };
  const read = () => {
    Object.assign(filters, { family: family.value, setting: setting.value, state: state.value, words: words.value });
    offer();
    changed();
  };
  for (const select of [family, setting, state]) select.addEventListener("change", read);
  words.addEventListener("input", read);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  reset.addEventListener("click", () => { byId("filters").reset(); for (const select of [family, setting, state]) select.value = ""; read(); });
  whenChanged(() => {
    offer();
    const all = study.runs.run.length, left = shown().length;
    count.textContent = left === all ? `${all} runs` : `${left} of ${all} runs`;
    reset.hidden = left === all && !Object.values(filters).some(Boolean);
  });
}
