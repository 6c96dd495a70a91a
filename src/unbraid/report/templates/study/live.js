// What only a served page can do: pictures when they are looked at, scores on demand, results as they come.
const LOOK_EVERY = 4000; // milliseconds
const asked = new Map();

function askForPicture(name) {
  if (!asked.has(name)) asked.set(name, ask(`${servedAt}picture/${encodeURIComponent(name)}`).catch((error) => ({ missing: error.message })));
  return asked.get(name);
}

function liveParts(run) {
  if (!study.live || study.runs.state[run] !== "finished") return [];
  const name = study.runs.run[run], known = new Set(study.columns.filter((column) => valueOf(run, column.id) !== null).map((column) => column.id.split(".")[0]));
  const metrics = study.live.metrics.filter((metric) => !known.has(metric)), said = make("span", { class: "what", role: "status" });
  const select = make("select", { "aria-label": "Metric" }, ...metrics.map((metric) => option(metric, metric, "")));
  const start = make("button", { type: "button", class: "act", onclick: () => scoreRun(run, select.value, said) }, "Score");
  const best = sorted(shown().filter((each) => study.runs.state[each] === "finished" && each !== run), ranking.key, bestFirst(ranking.key))[0];
  const links = [make("a", { href: `${servedAt}run/${encodeURIComponent(name)}` }, "Page of the run")];
  if (best !== undefined) links.push(" · ", make("a", { href: `${servedAt}compare/${encodeURIComponent(name)}/${encodeURIComponent(study.runs.run[best])}` }, `Beside ${runText(best)}`));
  return [make("p", {}, ...links), metrics.length ? make("p", { class: "on-demand" }, "Score by ", select, start, said) : null];
}

async function scoreRun(run, metric, said) {
  const name = study.runs.run[run];
  try {
    const job = await score(name, metric, (state) => { said.textContent = `${metric}: ${state} …`; });
    await look();
    said.textContent = `${metric}: ${job.reason || job.state}`;
    if (!job.reason && byId("run").open && byId("run-title").textContent === name) openRun(study.runs.run.indexOf(name));
  } catch (error) {
    said.textContent = `${metric}: ${error.message}`;
  }
}

async function look() {
  const data = await ask(`${servedAt}data`, { headers: { "If-None-Match": study.live.tag } });
  if (!data) return;
  take(data);
  for (const renew of renewals) renew();
  changed();
}

function setUpLive() {
  if (!study.live) return;
  const tell = () => {
    const left = study.runs.state.filter((state) => state === "waiting").length;
    byId("news").textContent = left ? `${left === 1 ? "1 run is" : `${left} runs are`} not finished; what ends appears here by itself.` : "";
  };
  whenRenewed(tell);
  const again = async () => {
    try {
      if (!document.hidden) await look();
    } catch {
      byId("news").textContent = "unbraid explore no longer answers; the page stays as it was.";
    }
    setTimeout(again, LOOK_EVERY);
  };
  setTimeout(again, LOOK_EVERY);
}
