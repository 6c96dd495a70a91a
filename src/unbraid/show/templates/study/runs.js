// One run: its picture, its numbers, where its files are; the best and the worst side by side; those that broke.
let pictures = null;

function pictureOf(run) {
  pictures ??= embedded("pictures");
  return pictures[study.runs.run[run]] ?? { missing: "Codes only: no traversals." };
}

function pictureFigure(run) {
  const picture = pictureOf(run);
  return make("div", { class: "picture" }, picture.missing ? make("p", { class: "none" }, picture.missing) : strip(picture, run));
}

function strip(picture, run) {
  return make("figure", { class: "strip" }, make("img", { src: picture.src, width: picture.width, height: picture.height, alt: `Traversals of ${runText(run)}: one latent a row, ${picture.latents.map((each) => each.name).join(", ")}` }),
    make("ol", { style: `--rows:${picture.latents.length}` }, ...picture.latents.map((each) => make("li", {}, each.name, make("span", {}, each.said)))));
}

function factList(run, keys) {
  return make("dl", { class: "facts-list" }, ...keys.filter((key) => valueOf(run, key) !== null).flatMap((key) => [make("dt", {}, labelOf(key)), make("dd", {}, valueText(run, key))]));
}

function openRun(run) {
  const { run: names, state, reason, folder } = study.runs, dialog = byId("run");
  const groups = study.groups.map(([group, title]) => [title, study.columns.filter((column) => column.group === group && valueOf(run, column.id) !== null).map((column) => column.id)]);
  byId("run-title").textContent = names[run];
  byId("run-body").replaceChildren(
    make("p", { class: "what" }, swatch(study.runs.family[run]), `${runText(run)}, ${state[run]}${reason[run] ? ": " + reason[run] : ""}`),
    folder[run] ? make("p", {}, make("a", { href: folder[run] }, "Folder of the run")) : null,
    pictureFigure(run),
    make("div", { class: "groups" }, ...groups.filter(([, keys]) => keys.length).map(([title, keys]) => make("div", {}, make("h3", {}, title), factList(run, keys)))));
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
}

function runCard(run, key) {
  const open = make("button", { type: "button", class: "link", onclick: () => openRun(run) }, runText(run));
  return make("article", {}, make("h4", {}, swatch(study.runs.family[run]), open), make("p", { class: "what" }, make("b", {}, valueText(run, key)), ` ${labelOf(key)}`), pictureFigure(run));
}

function showEnds() {
  const key = byId("ends-column").value, up = byId("ends-best").value === "high", count = 3;
  const runs = sorted(shown().filter((run) => valueOf(run, key) !== null), key, up), ends = Math.min(count, Math.floor(runs.length / 2) || runs.length);
  const best = runs.slice(0, ends).filter((run) => key !== "udr.score" || !study.not_best.includes(run));
  byId("ends-first").replaceChildren(...(best.length || !runs.length ? best.map((run) => runCard(run, key)) : study.verdict.map((line) => make("p", { class: "none" }, line))));
  byId("ends-last").replaceChildren(...runs.slice(Math.max(ends, runs.length - count)).reverse().map((run) => runCard(run, key)));
  byId("ends-none").hidden = runs.length > 0;
}

function setUpEnds() {
  const select = byId("ends-column");
  hideWithout("ends", 1);
  const direct = () => { byId("ends-best").value = bestFirst(select.value) ? "high" : "low"; };
  offerColumns(select, firstColumn());
  direct();
  select.addEventListener("change", () => { direct(); showEnds(); });
  byId("ends-best").addEventListener("change", showEnds);
  whenChanged(showEnds);
}

function showBroken() {
  const broken = study.runs.state.flatMap((state, run) => (["diverged", "failed"].includes(state) || study.runs.reason[run] ? [run] : []));
  byId("broken-none").hidden = broken.length > 0;
  byId("broken-table").hidden = broken.length === 0;
  byId("broken-body").replaceChildren(...broken.map((run) => make("tr", {},
    make("th", { scope: "row" }, make("button", { type: "button", class: "link", onclick: () => openRun(run) }, shortName(study.runs.run[run]))),
    make("td", {}, swatch(study.runs.family[run]), study.runs.family[run]), make("td", {}, study.runs.setting[run] || "–"), make("td", { class: "num" }, String(study.runs.seed[run] ?? "–")),
    make("td", { class: `s-${study.runs.state[run]}` }, study.runs.state[run]), make("td", { class: "why" }, study.runs.reason[run] || "no reason was recorded"))));
}

function showFacts() {
  const count = (state) => study.runs.state.filter((each) => each === state).length, seconds = (study.values.seconds ?? []).reduce((sum, each) => sum + (each ?? 0), 0);
  const states = ["finished", "diverged", "failed", "waiting"].map((state) => [state, count(state)]).filter(([state, number]) => number || state === "finished");
  const facts = [["runs", study.runs.run.length], ...states, ["families", families.length], ["settings", study.settings.length]];
  if (seconds) facts.push(["training, summed", seconds < 90 ? `${Math.round(seconds)} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`]);
  byId("facts").replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
}

function setUpRuns() {
  byId("run-close").addEventListener("click", () => byId("run").close());
  byId("run").addEventListener("click", (event) => { if (event.target === byId("run")) byId("run").close(); });
  showFacts();
  showBroken();
}
