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
{
  let waiting;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => { if (!byId("boxes").hidden) showBoxes(); if (!byId("scatter").hidden) showScatter(); }, 120); });
}
