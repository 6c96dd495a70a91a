// What only a served page can do: open the pages of runs, score on demand, follow a study that is still running.
const liveLinks = () => [];
