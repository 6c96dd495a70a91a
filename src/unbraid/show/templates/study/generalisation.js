// Compositional and zero-shot generalisation: mean and spread over the runs of each setting, a row per head or regressor.
const GENERALISATION = { compositional: "Combinations never seen (accuracy, chance is 0)", zero_shot: "Gap (error, lower is better)" };

function showGeneralisation() {
  const measured = study.columns.filter((column) => column.group in GENERALISATION && column.number && !column.id.endsWith("_spread"));
  const parts = Object.entries(GENERALISATION).map(([group, title]) => generalisationRows(title, measured.filter((column) => column.group === group)));
  byId("generalisation").hidden = !measured.length;
  byId("generalisation-table").replaceChildren(...parts.flat());
}

// "compositional.mlp.random_shape" is asked of "mlp, random split" and answers "shape".
function askedAndAnswer(column) {
  const [, who = "", ...rest] = column.id.split("."), value = rest.join("."), random = value.startsWith("random_");
  return [who + (random ? ", random split" : ""), random ? value.slice("random_".length) : value];
}

function generalisationRows(title, measured) {
  if (!measured.length) return [];
  const places = new Map(), answers = [...new Set(measured.map((column) => askedAndAnswer(column)[1]))];
  for (const column of measured) {
    const [who, answer] = askedAndAnswer(column);
    if (!places.has(who)) places.set(who, new Map());
    places.get(who).set(answer, column);
  }
  const head = make("thead", {}, make("tr", {}, ...["Family", "Setting", title].map((text) => make("th", { scope: "col" }, text)), ...answers.map((text) => make("th", { scope: "col", class: "num" }, text))));
  const rows = study.settings.flatMap((each) => [...places].map(([who, columns]) => [each, who, answers.map((answer) => meanOfSetting(each, columns.get(answer)))]));
  const filled = rows.filter(([, , cells]) => cells.some((cell) => cell.textContent !== "–"));
  return [head, make("tbody", {}, ...filled.map(([each, who, cells]) => make("tr", {}, make("th", { scope: "row" }, swatch(each.family), each.family), make("td", {}, settingText(each.setting)), make("th", { scope: "row" }, who), ...cells)))];
}

function meanOfSetting(each, column) {
  const runs = column ? shown().filter((run) => study.runs.family[run] === each.family && study.runs.setting[run] === each.setting) : [];
  const values = runs.map((run) => valueOf(run, column.id)).filter((value) => value !== null);
  if (!values.length) return make("td", { class: "num" }, "–");
  const centre = values.reduce((sum, each) => sum + each, 0) / values.length;
  const spread = values.length > 1 ? Math.sqrt(values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (values.length - 1)) : null;
  return make("td", { class: "num" }, numberText(centre), make("small", {}, spread === null ? "" : ` ± ${numberText(spread)}`), make("small", {}, ` (${values.length})`));
}
