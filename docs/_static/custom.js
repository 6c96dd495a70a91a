// Pages opened as files may not be read by others, so that a search there shows titles without extracts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
// Of the page of results: the boxes choose which rows are shown.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("form.results-filters"), table = document.querySelector("table.results");
  if (!form || !table) return;
  const rows = [...table.tBodies[0].rows], names = ["paper", "model", "dataset", "metric"];
  const show = () => {
    const wanted = names.map((name) => form.elements[name].value);
    const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const passes = wanted.every((value, place) => !value || row.cells[place].textContent === value);
      row.hidden = !(passes && words.every((word) => row.textContent.toLowerCase().includes(word)));
      count += !row.hidden;
    }
    form.querySelector("output").textContent = `${count} of ${rows.length}`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
});
