// Scales, axes, and the note beside the run under the cursor.
function scale(values, from, to, log) {
  let low = Math.min(...values), high = Math.max(...values);
  if (log) [low, high] = [Math.log10(low), Math.log10(high)];
  const room = (high - low) * 0.04 || Math.abs(low) * 0.1 || 1;
  [low, high] = [low - room, high + room];
  const place = (value) => from + (((log ? Math.log10(value) : value) - low) / (high - low)) * (to - from);
  place.ticks = log ? logTicks(low, high) : ticks(low, high, Math.max(3, Math.abs(to - from) / 70));
  return place;
}

function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((each) => each * power >= rough) ?? 10);
  const first = Math.ceil(low / step), last = Math.floor(high / step);
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(low); power <= high; power++) for (const each of high - low > 2 ? [1] : [1, 2, 5]) {
    const value = Number((each * 10 ** power).toPrecision(3));
    if (Math.log10(value) >= low && Math.log10(value) <= high) found.push(value);
  }
  return found;
}

const tickText = (value) => (Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(0) : String(value)).replace(/-/g, "\u2212");

function xAxis(place, top, bottom, left, right, title) {
  return draw("g", { class: "axis" },
    ...place.ticks.map((value) => draw("g", {}, draw("line", { x1: place(value), x2: place(value), y1: top, y2: bottom }), draw("text", { x: place(value), y: bottom + 16, "text-anchor": "middle" }, tickText(value)))),
    draw("text", { class: "title", x: (left + right) / 2, y: bottom + 36, "text-anchor": "middle" }, title));
}

function yAxis(place, left, right, top, bottom, title) {
  return draw("g", { class: "axis" },
    ...place.ticks.map((value) => draw("g", {}, draw("line", { x1: left, x2: right, y1: place(value), y2: place(value) }), draw("text", { x: left - 7, y: place(value) + 4, "text-anchor": "end" }, tickText(value)))),
    draw("text", { class: "title", "text-anchor": "middle", transform: `translate(13 ${(top + bottom) / 2}) rotate(-90)` }, title));
}

// The mark of a family: colour and, beyond six families, another shape.
function mark(run, x, y, size = 4.5) {
  const family = study.runs.family[run], round = families.indexOf(family) < 6, name = `dot c${marker(family)}`;
  return round ? draw("circle", { class: name, cx: x, cy: y, r: size }) : draw("rect", { class: name, x: x - size * 0.85, y: y - size * 0.85, width: size * 1.7, height: size * 1.7 });
}

const tip = { run: null };

function showTip(run, x, y, keys) {
  const box = byId("tip");
  if (tip.run !== run || tip.keys !== keys.join()) {
    tip.run = run; tip.keys = keys.join();
    const facts = [...new Set([...keys, ...study.columns.filter((column) => column.headline).map((column) => column.id).slice(0, 5)])];
    box.replaceChildren(make("b", {}, shortName(study.runs.run[run])), make("p", {}, swatch(study.runs.family[run]), runText(run)),
      make("dl", {}, ...facts.flatMap((key) => [make("dt", {}, labelOf(key)), make("dd", {}, valueText(run, key))])));
    const picture = pictureOf(run);
    if (picture.src) box.append(make("img", { src: picture.src, alt: "", width: picture.width, height: picture.height }));
  }
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = `${Math.max(8, Math.min(x + 16, innerWidth - width - 8))}px`;
  box.style.top = `${y + 16 + height < innerHeight - 8 ? y + 16 : Math.max(8, y - height - 16)}px`;
}

function hideTip() {
  byId("tip").hidden = true;
  tip.run = null;
}

// Lets a drawing name its runs: under the cursor, at a touch, and by the arrow keys.
function inspectable(svg, points, keys, said) {
  const ring = draw("circle", { class: "ring", r: 8, visibility: "hidden" });
  svg.append(ring);
  let at = -1;
  const show = (index) => {
    at = index;
    const box = svg.getBoundingClientRect(), point = points[index];
    fill(ring, { cx: point.x, cy: point.y, visibility: "visible" }, []);
    showTip(point.run, box.left + point.x, box.top + point.y, keys);
  };
  const hide = () => { at = -1; ring.setAttribute("visibility", "hidden"); hideTip(); };
  const nearest = (event) => {
    const box = svg.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    let best = -1, least = 20 ** 2;
    points.forEach((point, index) => { const gap = (point.x - x) ** 2 + (point.y - y) ** 2; if (gap < least) [best, least] = [index, gap]; });
    return best;
  };
  svg.addEventListener("pointermove", (event) => { const index = nearest(event); if (index < 0) hide(); else if (index !== at) show(index); });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("click", (event) => { const index = nearest(event); if (index >= 0) { hide(); openRun(points[index].run); } });
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step && points.length) {
      event.preventDefault();
      show(at < 0 ? (step > 0 ? 0 : points.length - 1) : (at + step + points.length) % points.length);
      said.textContent = `${runText(points[at].run)}: ${keys.map((key) => `${labelOf(key)} ${valueText(points[at].run, key)}`).join(", ")}`;
    } else if (event.key === "Enter" && at >= 0) { const run = points[at].run; hide(); openRun(run); }
    else if (event.key === "Escape") hide();
  });
}

function legend(place) {
  place.replaceChildren(...(families.length > 1 ? families.map((family) => make("li", {}, swatch(family), family)) : []));
}
