// Rank correlations of the columns with each other, as a table whose cells one walks with the arrow keys.
const stars = (p) => (p === null ? "" : p < 0.001 ? "***" : p < 0.01 ? "**" : p < 0.05 ? "*" : "");

function agreementCell(table, row, column) {
  const rho = table.rho[row][column], p = table.p[row][column], n = table.n[row][column];
  if (row === column) return make("td", { class: "same", role: "gridcell", "aria-hidden": "true" });
  if (rho === null) return make("td", { class: "none", role: "gridcell", tabindex: -1, "aria-label": `${labelOf(table.names[row])} with ${labelOf(table.names[column])}: not defined` }, "–");
  const text = (rho < 0 ? "\u2212" : "") + Math.abs(rho).toFixed(2).replace(/^0/, "");
  const said = `Spearman's ρ ${rho.toFixed(3).replace("-", "\u2212")}, ${p === null ? "" : `corrected p ${p < 0.0005 ? "< 0.0005" : "= " + p.toFixed(3)}, `}n = ${n}`;
  return make("td", {
    class: `${rho < 0 ? "minus" : "plus"}${p !== null && p < 0.05 ? "" : " weak"}`, role: "gridcell", tabindex: -1, style: `--w:${Math.round(Math.abs(rho) * 100)}%`,
    title: `${labelOf(table.names[row])} with ${labelOf(table.names[column])}: ${said}`, "data-row": table.names[row], "data-column": table.names[column],
    "aria-label": `${labelOf(table.names[row])} with ${labelOf(table.names[column])}: ${said}`,
  }, text, make("sup", { "aria-hidden": "true" }, stars(p)));
}

function showAgreement() {
  const table = study.agreement[byId("agreement-scope").value], grid = byId("agreement-table");
  const heads = table.names.map((name) => make("th", { scope: "col", role: "columnheader" }, make("span", {}, labelOf(name))));
  const rows = table.names.map((name, row) => make("tr", { role: "row" }, make("th", { scope: "row", role: "rowheader" }, labelOf(name)), ...table.names.map((_, column) => agreementCell(table, row, column))));
  grid.replaceChildren(make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, make("td", { role: "gridcell" }), ...heads)), make("tbody", { role: "rowgroup" }, ...rows));
  grid.querySelector("[data-row]")?.setAttribute("tabindex", "0");
}

function walkAgreement(event) {
  const cell = event.target.closest("td[data-row], td.none"), step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (!cell) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); cell.click(); }
  if (!step) return;
  event.preventDefault();
  const rows = byId("agreement-table").tBodies[0].rows;
  let [row, column] = [cell.parentNode.sectionRowIndex, cell.cellIndex];
  do { row += step[0]; column += step[1]; } while (rows[row]?.cells[column]?.matches(".same"));
  const next = rows[row]?.cells[column];
  if (next?.matches("td")) { cell.setAttribute("tabindex", "-1"); next.setAttribute("tabindex", "0"); next.focus(); }
}

function setUpAgreement() {
  const scope = byId("agreement-scope");
  scope.addEventListener("change", showAgreement);
  byId("agreement").hidden = !study.agreement.length;
  scope.replaceChildren(...study.agreement.map((each, index) => option(String(index), each.title, "0")));
  if (study.agreement.length) showAgreement();
  byId("agreement-table").addEventListener("keydown", walkAgreement);
  byId("agreement-table").addEventListener("click", (event) => {
    const cell = event.target.closest("td[data-row]");
    if (!cell) return;
    choosePair(cell.dataset.column, cell.dataset.row);
    byId("scatter").scrollIntoView({ behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  });
}
