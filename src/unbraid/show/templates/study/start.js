setUpFilters();
setUpRuns();
setUpRanking();
setUpEnds();
setUpBoxes();
setUpScatter();
setUpAgreement();
setUpUdr();
whenChanged(showGeneralisation);
for (const link of document.querySelectorAll("nav a")) link.hidden = document.querySelector(link.hash)?.hidden ?? false;
{
  let width = innerWidth;
  let waiting;
  addEventListener("resize", () => {
    if (width === innerWidth) return; // a telephone that hides its address bar
    width = innerWidth;
    clearTimeout(waiting); waiting = setTimeout(() => { showBoxes(); showScatter(); }, 120); });
}
