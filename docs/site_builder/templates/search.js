"use strict";
// Pages whose title, headings or text have every word that is typed; titles count most.
(function () {
  const root = document.body.dataset.root;
  const box = document.getElementById("search");
  const list = document.getElementById("found");
  const button = document.getElementById("menu-button");
  const fold = (text) => text.toLowerCase().normalize("NFD").replace(/[\u0300-\u036f]/g, "");
  const known = PAGES.map((page) => ({
    ...page, inTitle: fold(page.title + " " + page.url), inText: fold(page.text),
    inHeadings: page.headings.map(([text]) => fold(text)),
  }));
  let chosen = -1;

  function find(query) {
    const words = fold(query).split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const results = [];
    for (const page of known) {
      let score = 0, heading = null;
      for (const word of words) {
        const at = page.inHeadings.findIndex((text) => text.includes(word));
        const points = (page.inTitle.includes(word) ? 8 : 0) + (at >= 0 ? 3 : 0) + (page.inText.includes(word) ? 1 : 0);
        if (!points) { score = 0; break; }
        if (at >= 0 && !page.inTitle.includes(word)) heading = page.headings[at];
        score += points;
      }
      if (score) results.push({ page, score, heading });
    }
    return results.sort((a, b) => b.score - a.score).slice(0, 12);
  }

  function snippet(page, query) {
    const word = fold(query).split(/\s+/).filter(Boolean)[0];
    const at = page.inText.indexOf(word);
    if (at < 0) return page.text.slice(0, 90);
    const from = Math.max(0, at - 35);
    return (from ? "…" : "") + page.text.slice(from, at + 60) + "…";
  }

  function show() {
    const query = box.value;
    const results = find(query);
    list.replaceChildren();
    chosen = -1;
    for (const [number, { page, heading }] of results.entries()) {
      const item = document.createElement("li");
      item.id = "found-" + number;
      item.setAttribute("role", "option");
      const link = document.createElement("a");
      link.href = root + page.url + (heading ? "#" + heading[1] : "");
      link.tabIndex = -1;
      const title = document.createElement("b");
      title.textContent = page.title + (heading ? " › " + heading[0] : "");
      const text = document.createElement("span");
      text.textContent = snippet(page, query);
      link.append(title, text);
      item.append(link);
      list.append(item);
    }
    if (query.trim() && !results.length) {
      const item = document.createElement("li");
      item.textContent = "Nothing found";
      list.append(item);
    }
    list.hidden = !query.trim();
    box.setAttribute("aria-expanded", String(!list.hidden));
  }

  function choose(step) {
    const items = [...list.querySelectorAll("[role=option]")];
    if (!items.length) return;
    chosen = (chosen + step + items.length) % items.length;
    items.forEach((item, number) => item.setAttribute("aria-selected", String(number === chosen)));
    box.setAttribute("aria-activedescendant", items[chosen].id);
    items[chosen].scrollIntoView({ block: "nearest" });
  }

  box.addEventListener("input", show);
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") { choose(1); event.preventDefault(); }
    else if (event.key === "ArrowUp") { choose(-1); event.preventDefault(); }
    else if (event.key === "Escape") { box.value = ""; show(); }
    else if (event.key === "Enter") {
      const link = list.querySelectorAll("[role=option] a")[Math.max(chosen, 0)];
      if (link) location.href = link.href;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { box.focus(); event.preventDefault(); }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("form[role=search]")) { list.hidden = true; box.setAttribute("aria-expanded", "false"); }
  });
  button.addEventListener("click", () => {
    const open = document.body.classList.toggle("menu-open");
    button.setAttribute("aria-expanded", String(open));
  });
})();
