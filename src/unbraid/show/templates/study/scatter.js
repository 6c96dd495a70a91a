// Any column against any other.
const scatter = { x: "", y: "" };

function ranks(values) {
  const order = values.map((_, index) => index).sort((a, b) => values[a] - values[b]), found = new Array(values.length);
  for (let start = 0; start < order.length; ) {
    let end = start;
    while (end + 1 < order.length && values[order[end + 1]] === values[order[start]]) end++;
    for (let place = start; place <= end; place++) found[order[place]] = (start + end) / 2;
    start = end + 1;
  }
  return found;
}

// Spearman's rank correlation, ties at their mean rank; null where a side is constant.
function spearman(x, y) {
  const a = ranks(x), b = ranks(y), mean = (x.length - 1) / 2;
  let both = 0, left = 0, right = 0;
  for (let index = 0; index < a.length; index++) {
    both += (a[index] - mean) * (b[index] - mean);
    left += (a[index] - mean) ** 2;
    right += (b[index] - mean) ** 2;
  }
  return left > 0 && right > 0 ? both / Math.sqrt(left * right) : null;
}

function showScatter() {
  const place = byId("scatter-plot"), width = Math.max(260, Math.min(place.clientWidth, 860)), height = Math.round(Math.max(300, Math.min(width * 0.62, 460)));
  const { x, y } = scatter, logs = { x: byId("scatter-log-x"), y: byId("scatter-log-y") };
  const runs = shown().filter((run) => valueOf(run, x) !== null && valueOf(run, y) !== null);
  for (const side of ["x", "y"]) {
    logs[side].disabled = runs.some((run) => valueOf(run, scatter[side]) <= 0);
    if (logs[side].disabled) logs[side].checked = false;
  }
  if (!runs.length) { place.replaceChildren(make("p", { class: "none" }, "No shown run has both numbers.")); byId("scatter-says").textContent = ""; return; }
  const left = 58, right = width - 12, top = 10, bottom = height - 46;
  const toX = scale(runs.map((run) => valueOf(run, x)), left, right, logs.x.checked), toY = scale(runs.map((run) => valueOf(run, y)), bottom, top, logs.y.checked);
  const points = runs.map((run) => ({ run, x: toX(valueOf(run, x)), y: toY(valueOf(run, y)) })).sort((a, b) => a.x - b.x);
  const rho = runs.length > 2 ? spearman(runs.map((run) => valueOf(run, x)), runs.map((run) => valueOf(run, y))) : null;
  const says = `${runs.length} runs${rho === null ? "" : `, Spearman's ρ = ${rho.toFixed(3).replace("-", "\u2212")}`}`;
  const svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "group", "aria-roledescription": "scatter plot", "aria-label": `${labelOf(y)} against ${labelOf(x)}: ${says}. Arrow keys go from run to run, Enter opens one.` },
    xAxis(toX, top, bottom, left, right, labelOf(x)), yAxis(toY, left, right, top, bottom, labelOf(y)), ...points.map((point) => mark(point.run, point.x, point.y)));
  inspectable(svg, points, [x, y], byId("scatter-said"));
  place.replaceChildren(svg);
  byId("scatter-says").textContent = `${says}.`;
}

function choosePair(x, y) {
  Object.assign(scatter, { x, y });
  byId("scatter-x").value = x;
  byId("scatter-y").value = y;
  showScatter();
}

function setUpScatter() {
  hideWithout("scatter", 2);
  const [first, second] = numeric().sort((a, b) => b.headline - a.headline).map((column) => column.id);
  scatter.x = offerColumns(byId("scatter-x"), first);
  scatter.y = offerColumns(byId("scatter-y"), second);
  legend(byId("scatter-legend"));
  for (const side of ["x", "y"]) {
    byId(`scatter-${side}`).addEventListener("change", (event) => { scatter[side] = event.target.value; showScatter(); });
    byId(`scatter-log-${side}`).addEventListener("change", showScatter);
  }
  whenChanged(showScatter);
}
