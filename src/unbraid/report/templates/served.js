{% include "ask.js" %}
if (document.getElementById("on-demand")) {
  const served = JSON.parse(document.getElementById("served-data").textContent);
  const choice = document.getElementById("on-demand"), start = document.getElementById("on-demand-start"), said = document.getElementById("on-demand-said");
  start.addEventListener("click", async () => {
    const metric = choice.value;
    start.disabled = true;
    try {
      const job = await score(served.run, metric, (state) => { said.textContent = `${metric}: ${state} …`; });
      said.textContent = `${metric}: ${job.reason || job.state}`;
      if (job.state === "done" && !job.reason) location.reload();
    } catch (error) {
      said.textContent = `${metric}: ${error.message}`;
    }
    start.disabled = false;
  });
}
