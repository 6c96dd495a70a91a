"use strict";
{
  const button = document.getElementById("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  let dark = system.matches;
  const show = () => { button.textContent = dark ? "Light" : "Dark"; button.setAttribute("aria-label", `Use ${dark ? "light" : "dark"} colours`); };
  system.addEventListener("change", () => { if (!document.documentElement.style.colorScheme) { dark = system.matches; show(); } });
  button.addEventListener("click", () => { dark = !dark; document.documentElement.style.colorScheme = dark ? "dark" : "light"; show(); });
  button.hidden = false;
  show();
  // Paper has nothing to click on: what is folded is printed, and folded again.
  let unfolded = [];
  addEventListener("beforeprint", () => { unfolded = [...document.querySelectorAll("details:not([open])")]; for (const each of unfolded) each.open = true; });
  addEventListener("afterprint", () => { for (const each of unfolded) each.open = false; });
}
