// Compositional and zero-shot generalisation: mean and spread over the runs of each setting.
function showGeneralisation() {
  const key = (column) => ["compositional", "zero_shot"].includes(column.group) && column.number && !column.id.endsWith("_spread"), measured = study.columns.filter(key);
  const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;
  const cells = (each) => measured.map((column) => {
    const values = shown().filter((run) => study.runs.family[run] === each.family && study.runs.setting[run] === each.setting).map((run) => valueOf(run, column.id)).filter((value) => value !== null);
    if (!values.length) return make("td", { class: "num" }, "–");
    const centre = mean(values), spread = values.length > 1 ? Math.sqrt(values.reduce((sum, value) => sum + (value - centre) ** 2, 0) / (values.length - 1)) : null;
    return make("td", { class: "num" }, numberText(centre), make("small", {}, spread === null ? "" : ` ± ${numberText(spread)}`), make("small", {}, ` (${values.length})`));
  });
  const rows = study.settings.map((each) => [each, cells(each)]).filter(([, found]) => found.some((cell) => cell.textContent !== "–"));
  byId("generalisation").hidden = !measured.length;
  byId("generalisation-table").replaceChildren(
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Family"), make("th", { scope: "col" }, "Setting"), ...measured.map((column) => make("th", { scope: "col", class: "num" }, column.label)))),
    make("tbody", {}, ...rows.map(([each, found]) => make("tr", {}, make("th", { scope: "row" }, swatch(each.family), each.family), make("td", {}, settingText(each.setting)), ...found))));
}
