// Questions to the server of a page; below which address it has this study.
const servedAt = location.pathname.replace(/(run\/[^/]+|compare\/[^/]+\/[^/]+)$/, "");

async function ask(address, options = {}) {
  const reply = await fetch(address, options);
  if (!reply.ok && reply.status !== 304) throw new Error((await reply.text()).trim());
  return reply.status === 304 ? null : reply.json();
}

// Has a run scored by a metric; `tell` is called with each state on the way, and the last job is returned.
async function score(run, metric, tell) {
  const mine = (jobs) => jobs.find((job) => job.run === run && job.metric === metric);
  let job = mine(await ask(`${servedAt}score`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ run, metric }) }));
  while (job.state === "waiting" || job.state === "working") {
    tell(job.state);
    await new Promise((resolve) => setTimeout(resolve, 300));
    job = mine(await ask(`${servedAt}jobs`));
  }
  return job;
}
