// The spread over seeds of one column: a box per setting, as in UDR's figures 2 and 3.
function quantile(ordered, share) {
  const at = (ordered.length - 1) * share, low = Math.floor(at);
  return ordered[low] + (at - low) * ((ordered[low + 1] ?? ordered[low]) - ordered[low]);
}

function boxOf(values) {
  const ordered = [...values].sort((a, b) => a - b);
  const [first, median, third] = [0.25, 0.5, 0.75].map((share) => quantile(ordered, share)), reach = 1.5 * (third - first);
  const inside = ordered.filter((value) => value >= first - reach && value <= third + reach);
  // A quartile between two runs may have none inside on its own side: the whisker then ends at the box.
  return { first, median, third, low: Math.min(inside[0], first), high: Math.max(inside[inside.length - 1], third), n: ordered.length };
}

function boxesOf(key) {
  const found = new Map();
  for (const run of shown()) {
    const value = valueOf(run, key), name = JSON.stringify([study.runs.family[run], study.runs.setting[run]]);
    if (value !== null) found.set(name, [...(found.get(name) ?? []), { run, value }]);
  }
  return study.settings.filter((each) => found.has(JSON.stringify([each.family, each.setting]))).map((each) => {
    const points = found.get(JSON.stringify([each.family, each.setting]));
    return { ...each, points, box: boxOf(points.map((point) => point.value)) };
  });
}

// The best baseline without training, a line beside which every run can be seen.
function bestBaseline(key) {
  const found = study.baselines.map((each) => each.scores[key]).filter(Boolean).map(([, low, high]) => (bestFirst(key) ? high : low));
  return found.length ? Math[bestFirst(key) ? "max" : "min"](...found) : null;
}

function showBoxes() {
  const place = byId("boxes-plot"), key = byId("boxes-column").value, byMedian = byId("boxes-order").value === "median";
  const boxes = boxesOf(key);
  if (!boxes.length) { place.replaceChildren(make("p", { class: "none" }, "No shown run has this number.")); byId("boxes-numbers").replaceChildren(); return; }
  if (byMedian) boxes.sort((a, b) => (bestFirst(key) ? b.box.median - a.box.median : a.box.median - b.box.median));
  const width = Math.max(260, Math.min(place.clientWidth, 1000)), left = Math.min(230, Math.max(112, width * 0.26)), right = width - 14, line = 23;
  const letters = Math.floor((left - 22) / 6.6), cut = (text) => (text.length > letters ? text.slice(0, letters - 1) + "…" : text);
  let y = 8, family = null;
  const parts = [], points = [], values = boxes.flatMap((each) => each.points.map((point) => point.value)), best = bestBaseline(key), toX = scale(best === null ? values : [...values, best], left, right, false);
  for (const each of boxes) {
    if (!byMedian && each.family !== family) {
      family = each.family; y += parts.length ? 10 : 0;
      parts.push(draw("text", { class: "family", x: 0, y: y + 15 }, cut(family), draw("title", {}, family)));
      if (study.settings.filter((other) => other.family === family).length > 1 || each.setting) y += line;
    }
    const middle = y + line / 2 - 1, colour = `c${marker(each.family)}`, { first, median, third, low, high } = each.box;
    const name = byMedian ? `${each.family} ${each.setting}` : each.setting;
    parts.push(draw("g", { class: `box ${colour}` },
      draw("text", { x: left - 10, y: middle + 4, "text-anchor": "end" }, cut(name), draw("title", {}, name)),
      draw("line", { x1: toX(low), x2: toX(first), y1: middle, y2: middle }), draw("line", { x1: toX(third), x2: toX(high), y1: middle, y2: middle }),
      draw("rect", { x: toX(first), y: middle - 7, width: Math.max(1, toX(third) - toX(first)), height: 14, rx: 2 }),
      ...each.points.map((point) => draw("circle", { cx: toX(point.value), cy: middle, r: 2.6 })),
      draw("line", { class: "median", x1: toX(median), x2: toX(median), y1: middle - 9, y2: middle + 9 })));
    for (const point of each.points) points.push({ run: point.run, x: toX(point.value), y: middle });
    y += line;
  }
  const height = y + 48, svg = draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "group", "aria-roledescription": "box plot", "aria-label": `${labelOf(key)} per setting, ${boxes.length} settings. Arrow keys go from run to run, Enter opens one; the numbers follow as a table.` },
    xAxis(toX, 4, y + 4, left, right, labelOf(key)), ...parts, best === null ? null : draw("line", { class: "baseline", x1: toX(best), x2: toX(best), y1: 4, y2: y + 4 }, draw("title", {}, `best baseline: ${numberText(best)}`)));
  inspectable(svg, points, [key], byId("boxes-said"));
  place.replaceChildren(svg);
  showBoxNumbers(boxes);
}

function showBoxNumbers(boxes) {
  const names = ["n", "low", "first", "median", "third", "high"], heads = ["Family", "Setting", "Runs", "Low", "Quartile", "Median", "Quartile", "High"];
  byId("boxes-numbers").replaceChildren(
    make("thead", {}, make("tr", {}, ...heads.map((head, index) => make("th", { scope: "col", class: index > 1 ? "num" : "" }, head)))),
    make("tbody", {}, ...boxes.map((each) => make("tr", {}, make("th", { scope: "row" }, each.family), make("td", {}, settingText(each.setting)), ...names.map((name) => make("td", { class: "num" }, numberText(each.box[name], name === "n")))))));
}

function setUpBoxes() {
  const select = byId("boxes-column");
  hideWithout("boxes", 1);
  offerColumns(select, firstColumn(), (column) => column.number && column.group !== "hyper");
  select.addEventListener("change", showBoxes);
  byId("boxes-order").addEventListener("change", showBoxes);
  whenChanged(showBoxes);
}
