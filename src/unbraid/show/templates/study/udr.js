// The similarity of each two models as a map, and of the latents of the two under the cursor.
const LEVELS = 250, MISSING = 255;
const udr = { ranking: null, pairs: null, starts: null, entries: null, cells: [], at: [0, 0] };
const unpack = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// Dark blue over teal to light yellow, so that lightness alone tells the order.
const RAMP = [[23, 23, 66], [38, 76, 128], [35, 128, 141], [77, 178, 121], [180, 216, 92], [253, 240, 150]];
function ramp(level) {
  const at = (level / LEVELS) * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2);
  return RAMP[low].map((from, channel) => Math.round(from + (at - low) * (RAMP[low + 1][channel] - from)));
}
const SHADES = Array.from({ length: LEVELS + 1 }, (_, level) => `rgb(${ramp(level).join(" ")})`);

function chooseRanking(index) {
  const ranking = study.udr[index], n = ranking.runs.length;
  Object.assign(udr, { ranking, pairs: unpack(ranking.pairs), starts: null, at: [0, Math.min(1, n - 1)] });
  // Squares of some pixels, and a gap between settings.
  const side = Math.max(1, Math.min(28, Math.floor(600 / n))), gap = side > 3 ? 3 : 1;
  let place = 0;
  udr.side = side;
  udr.cells = ranking.runs.map((run, model) => {
    const before = ranking.runs[model - 1];
    if (model && (study.runs.family[before] !== study.runs.family[run] || study.runs.setting[before] !== study.runs.setting[run])) place += gap;
    place += side;
    return place - side;
  });
  showMap();
  showPair(false);
  byId("udr-notes").replaceChildren(...ranking.notes.map((note) => make("li", {}, note)));
  showSuitability(ranking.suitability);
}

function showMap() {
  const canvas = byId("udr-map"), n = udr.cells.length, size = udr.cells[n - 1] + udr.side, context = canvas.getContext("2d");
  canvas.width = canvas.height = size;
  byId("udr-square").style.maxWidth = `${Math.min(640, Math.max(size, n * 2))}px`;
  for (let i = 0; i < n; i++) for (let j = 0; j < n; j++) {
    const level = udr.pairs[i * n + j];
    if (level === MISSING) continue;
    context.fillStyle = SHADES[level];
    context.fillRect(udr.cells[j], udr.cells[i], udr.side, udr.side);
  }
}

// Where the matrix of latents of each compared pair begins, found out when first asked for.
function matrixOf(i, j) {
  if (!udr.starts) {
    const compared = new Uint16Array(unpack(udr.ranking.compared).buffer), sizes = udr.ranking.latents.map((each) => each.length);
    udr.starts = new Map();
    for (let pair = 0, start = 0; pair < compared.length; pair += 2) {
      udr.starts.set(compared[pair] * sizes.length + compared[pair + 1], start);
      start += sizes[compared[pair]] * sizes[compared[pair + 1]];
    }
    udr.entries = unpack(udr.ranking.matrices);
  }
  return udr.starts.get(i * udr.cells.length + j) ?? null;
}

function latentTable(i, j) {
  const start = matrixOf(i, j), rows = udr.ranking.latents[i], across = udr.ranking.latents[j];
  if (start === null) return make("p", { class: "none" }, udr.ranking.within ? "Their latents are kept for pairs of one setting alone." : "These two were not compared.");
  if (!rows.length || !across.length) return make("p", { class: "none" }, "One of them has no informative latent.");
  const cell = (level) => make("td", { style: `background:${SHADES[level]}`, title: (level / LEVELS).toFixed(2) }, make("span", { class: "hidden" }, (level / LEVELS).toFixed(2)));
  return make("table", { class: "latents-map" }, make("caption", {}, "Rows: latents of the first; columns: of the second"),
    make("thead", {}, make("tr", {}, make("td"), ...across.map((latent) => make("th", { scope: "col" }, String(latent))))),
    make("tbody", {}, ...rows.map((latent, row) => make("tr", {}, make("th", { scope: "row" }, String(latent)), ...across.map((_, column) => cell(udr.entries[start + row * across.length + column]))))));
}

function showPair(spoken) {
  const [i, j] = udr.at, n = udr.cells.length, level = udr.pairs[i * n + j], [first, second] = [udr.ranking.runs[i], udr.ranking.runs[j]];
  const said = i === j ? "a model and itself" : level === MISSING ? "not compared" : `UDR ${(level / LEVELS).toFixed(2)}`;
  const name = (run) => make("button", { type: "button", class: "link", onclick: () => openRun(run) }, runText(run));
  byId("udr-pair").replaceChildren(make("p", {}, make("b", {}, said)), make("p", {}, "first ", name(first)), make("p", {}, "second ", name(second)), i === j ? "" : latentTable(i, j));
  if (spoken) byId("udr-said").textContent = `${runText(first)} and ${runText(second)}: ${said}`;
  const box = byId("udr-frame"), size = udr.cells[n - 1] + udr.side, side = (100 * udr.side) / size;
  fill(box, { style: `left:${(100 * udr.cells[j]) / size}%;top:${(100 * udr.cells[i]) / size}%;width:${side}%;height:${side}%` }, []);
}

function showSuitability(families) {
  byId("udr-suitability").hidden = !families.length;
  const share = (value) => (value === null ? "–" : `${(100 * value).toFixed(0)} %`);
  byId("udr-suitability").querySelector("tbody").replaceChildren(...families.map((each) => make("tr", {}, make("th", { scope: "row" }, swatch(each.family), each.family),
    make("td", { class: "num" }, share(each.within_seed_win_rate)), make("td", { class: "num" }, share(each.across_seed_win_rate)), make("td", { class: "num" }, each.likeness === null ? "–" : each.likeness.toFixed(3)),
    make("td", { class: "why" }, each.warning || each.reason || "nothing speaks against it"))));
  byId("udr-judge").textContent = families.length ? labelOf(families[0].metric) : "";
}

function setUpUdr() {
  const choice = byId("udr-ranking"), canvas = byId("udr-map");
  choice.addEventListener("change", () => chooseRanking(Number(choice.value)));
  const under = (event) => {
    const box = canvas.getBoundingClientRect(), size = canvas.width;
    const at = [event.clientY - box.top, event.clientX - box.left].map((offset) => Math.floor((offset / box.width) * size)).map((cell) => udr.cells.findLastIndex((each) => each <= cell));
    return at.every((model) => model >= 0) ? at : udr.at;
  };
  let held = false; // a click keeps the pair while the cursor goes to its latents
  canvas.addEventListener("pointermove", (event) => { if (!held) { udr.at = under(event); showPair(false); } });
  canvas.addEventListener("pointerleave", () => { held = true; });
  canvas.addEventListener("pointerenter", () => { held = false; });
  canvas.addEventListener("click", (event) => { udr.at = under(event); held = true; showPair(true); });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key], n = udr.cells.length;
    if (!step) return;
    event.preventDefault();
    udr.at = udr.at.map((model, side) => Math.max(0, Math.min(n - 1, model + step[side])));
    showPair(true);
  });
  byId("udr-scale").style.background = `linear-gradient(to right, ${SHADES.filter((_, level) => level % 25 === 0).join(", ")})`;
  byId("udr").hidden = !study.udr.length;
  choice.replaceChildren(...study.udr.map((each, index) => option(String(index), each.title, "0")));
  if (study.udr.length) chooseRanking(choice.selectedIndex);
}
