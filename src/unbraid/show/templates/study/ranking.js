// The ranking: one row per run, sorted by any column; rows are made once and only moved afterwards.
const ranking = { key: "", down: true, shown: new Set(), rows: new Map() };

function compare(a, b, key, down) {
  const left = valueOf(a, key), right = valueOf(b, key);
  if (left === right) return a - b;
  if (left === null || left === "") return 1; // without a value last, whichever way
  if (right === null || right === "") return -1;
  const order = typeof left === "number" && typeof right === "number" ? left - right : key === "setting" ? settingPlace(a) - settingPlace(b) : String(left).localeCompare(String(right), undefined, { numeric: true });
  return down ? -order : order;
}

function settingPlace(run) {
  return study.settings.findIndex((each) => each.family === study.runs.family[run] && each.setting === study.runs.setting[run]);
}

const sorted = (runs, key, down) => [...runs].sort((a, b) => compare(a, b, key, down));
const bestFirst = (key) => columns.get(key)?.higher !== false;

function sortBy(key) {
  const same = ranking.key === key;
  ranking.down = same ? !ranking.down : columns.has(key) && bestFirst(key);
  ranking.key = key;
  showRanking();
  byId("ranking-said").textContent = `Sorted by ${labelOf(key)}, ${ranking.down ? "falling" : "rising"}.`;
}

function headCell(key, title, about) {
  const sort = ranking.key === key ? (ranking.down ? "descending" : "ascending") : null;
  const number = columns.get(key)?.number || key === "seed";
  const button = make("button", { type: "button", title: about || null, "data-key": key, onclick: () => sortBy(key) }, title);
  return make("th", { scope: "col", "aria-sort": sort, class: `${number ? "num" : ""} k-${NAMES.includes(key) ? key : "value"}` }, button);
}

function showHead() {
  const focused = document.activeElement?.dataset?.key;
  const names = NAMES.filter((key) => key !== "reason").map((key) => headCell(key, { run: "Run", family: "Family", setting: "Setting", seed: "Seed", state: "State" }[key], ""));
  const numbers = study.columns.filter((column) => ranking.shown.has(column.id)).map((column) => headCell(column.id, column.label, column.about));
  const place = make("th", { scope: "col", class: "num k-place" }, "#");
  byId("ranking-head").replaceChildren(make("tr", {}, place, ...inOrder(names, numbers)));
  if (focused) byId("ranking-head").querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
}

// On a phone the numbers come right after the run: the one that ranks is seen without scrolling.
const narrow = matchMedia("(max-width: 760px)");
const inOrder = ([run, ...about], numbers) => (narrow.matches ? [run, ...numbers, ...about] : [run, ...about, ...numbers]);

function rowOf(run) {
  if (ranking.rows.has(run)) return ranking.rows.get(run);
  const { run: names, family, setting, seed, state, reason } = study.runs;
  const open = make("button", { type: "button", title: names[run], "data-run": names[run], onclick: () => openRun(run), "aria-label": `Open ${names[run]}: ${runText(run)}` }, shortName(names[run]));
  const told = [
    make("th", { scope: "row", class: "k-run" }, open),
    make("td", { class: "k-family" }, swatch(family[run]), family[run]), make("td", { class: "k-setting" }, setting[run] || "–"),
    make("td", { class: "num k-seed" }, String(seed[run] ?? "–")),
    make("td", { class: `k-state s-${state[run]}`, title: reason[run] || null }, state[run]),
  ];
  const numbers = study.columns.filter((column) => ranking.shown.has(column.id)).map((column) => valueCell(run, column));
  const row = make("tr", {}, make("td", { class: "num k-place" }), ...inOrder(told, numbers));
  ranking.rows.set(run, row);
  return row;
}

function valueCell(run, column) {
  const value = valueOf(run, column.id), [low, high] = column.number ? extent(column.id) : [0, 0];
  const bar = column.number && column.group !== "hyper" && value !== null && high > low;
  return make("td", { class: column.number ? (bar ? "num bar" : "num") : "", style: bar ? `--p:${((100 * (value - low)) / (high - low)).toFixed(1)}%` : null }, numberText(value, column.whole), noBetter(run, column.id) ? make("abbr", { class: "dagger", title: "no better than its best baseline" }, "†") : null);
}

const noBetter = (run, key) => study.no_better[key]?.includes(run) ?? false;

// Baselines without training, by the columns that are shown: one row for each kind and number of codes.
function showBaselines() {
  const measured = study.columns.filter((column) => study.baselines.some((each) => column.id in each.scores));
  byId("baselines").hidden = !measured.length;
  const cell = (told) => (told ? [numberText(told[0]), told[1] < told[2] ? make("small", {}, ` (${numberText(told[1])} to ${numberText(told[2])})`) : null] : ["–"]);
  byId("baselines-table").replaceChildren(
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Baseline"), ...["Codes", "Number", ...measured.map((column) => column.label)].map((text) => make("th", { scope: "col", class: "num" }, text)))),
    make("tbody", {}, ...study.baselines.map((each) => make("tr", {}, make("th", { scope: "row" }, each.baseline), make("td", { class: "num" }, String(each.codes)), make("td", { class: "num" }, String(each.number)), ...measured.map((column) => make("td", { class: "num" }, ...cell(each.scores[column.id])))))));
}

const extents = new Map();

function extent(key) {
  if (!extents.has(key)) {
    const values = study.values[key].filter((value) => value !== null), low = Math.min(...values), high = Math.max(...values);
    extents.set(key, [low >= 0 && high <= 1 ? 0 : low, high]);
  }
  return extents.get(key);
}

function showRanking() {
  showHead();
  const rows = sorted(shown(), ranking.key, ranking.down).map(rowOf);
  rows.forEach((row, place) => { row.cells[0].textContent = place + 1; });
  byId("ranking-body").replaceChildren(...rows);
  byId("ranking-none").hidden = rows.length > 0;
  byId("ranking-verdict").replaceChildren(...study.verdict.map((line) => make("li", {}, line)));
}

function offerRankingColumns() {
  const fieldset = ([group, title]) => {
    const members = study.columns.filter((column) => column.group === group);
    return members.length ? make("fieldset", {}, make("legend", {}, title), ...members.map(columnChoice)) : "";
  };
  byId("ranking-columns").replaceChildren(...study.groups.map(fieldset));
}

function columnChoice(column) {
  const choose = (event) => {
    ranking.shown[event.target.checked ? "add" : "delete"](column.id);
    ranking.rows.clear();
    showRanking();
  };
  return make("label", {}, make("input", { type: "checkbox", checked: ranking.shown.has(column.id), value: column.id, onchange: choose }), column.label);
}

function setUpRanking() {
  const first = firstColumn();
  ranking.key = first || "family";
  ranking.down = first !== "" && bestFirst(first);
  for (const column of study.columns) if (column.shown) ranking.shown.add(column.id);
  offerRankingColumns();
  showBaselines();
  narrow.addEventListener("change", () => { ranking.rows.clear(); showRanking(); });
  whenChanged(showRanking);
}
