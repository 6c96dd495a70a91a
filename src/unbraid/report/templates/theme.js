"use strict";
{
  const button = document.getElementById("theme"), system = matchMedia("(prefers-color-scheme: dark)");
  let dark = system.matches;
  const show = () => { button.textContent = dark ? "Light" : "Dark"; button.setAttribute("aria-label", `Use ${dark ? "light" : "dark"} colours`); };
  system.addEventListener("change", () => { if (!document.documentElement.style.colorScheme) { dark = system.matches; show(); } });
  button.addEventListener("click", () => { dark = !dark; document.documentElement.style.colorScheme = dark ? "dark" : "light"; show(); });
  button.hidden = false;
  show();
}
