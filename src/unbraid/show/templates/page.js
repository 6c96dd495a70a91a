"use strict";
const scores = document.querySelector(".ub-scores") ?? document.createElement("table");
for (const head of scores.querySelectorAll("th[data-sort]")) {
  const button = document.createElement("button");
  button.textContent = head.textContent;
  head.replaceChildren(button);
  const key = head.dataset.sort;
  button.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of scores.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    for (const body of scores.tBodies) {
      const rows = [...body.rows].filter((row) => row.dataset.name !== undefined);
      rows.sort((a, b) => key === "number" ? a.dataset.number - b.dataset.number : a.dataset.name.localeCompare(b.dataset.name));
      body.append(...(down ? rows.reverse() : rows));
    }
  });
}
const more = scores.querySelectorAll("details");
const toggle = document.querySelector(".tools button");
if (more.length) {
  toggle.hidden = false;
  toggle.addEventListener("click", () => {
    const open = toggle.getAttribute("aria-pressed") !== "true";
    for (const each of more) each.open = open;
    toggle.setAttribute("aria-pressed", open);
    toggle.textContent = open ? "Hide details" : "Show all details";
  });
}
for (const find of document.querySelectorAll("#codes .find")) {
  find.hidden = false;
  const [words, count] = [find.querySelector("input"), find.querySelector("output")];
  const rows = [...find.parentElement.querySelectorAll("tbody tr")];
  words.addEventListener("input", () => {
    const asked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const cells = [...row.cells].map((cell) => cell.textContent.toLowerCase());
      const text = ` ${[cells[0], cells.at(-2), cells.at(-1)].join(" ")} `;
      row.hidden = !asked.every((word) => text.includes(/^\d+$/.test(word) ? ` ${word} ` : word));
    }
    count.textContent = asked.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length}` : "";
  });
}
