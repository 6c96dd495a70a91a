take(embedded("study"));
setUpFilters();
setUpRuns();
setUpRanking();
setUpEnds();
setUpBoxes();
setUpScatter();
setUpAgreement();
setUpUdr();
whenChanged(showGeneralisation);
setUpLive();
{
  let width = innerWidth;
  let waiting;
  addEventListener("resize", () => {
    if (width === innerWidth) return; // a telephone that hides its address bar
    width = innerWidth;
    clearTimeout(waiting); waiting = setTimeout(() => { showBoxes(); showScatter(); }, 120); });
}
