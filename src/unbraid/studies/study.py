"""`Study`: load, run, rank, compare. Of this folder, only modules that add to a study import it."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unbraid.base.types import Progress
from unbraid.files.remote import changing, local_folder
from unbraid.ranking.ranking import Ranking
from unbraid.runs.foreign_models import check_not_fitted
from unbraid.scoring.group_comparison import Comparison
from unbraid.studies import store
from unbraid.studies.execution import run_study
from unbraid.studies.schema import read_study
from unbraid.studies.shards import parse_shard
from unbraid.studies.snapshot import RunView
from unbraid.studies.study_baselines import scored_baselines
from unbraid.studies.study_comparison import compare_runs
from unbraid.studies.study_page import table
from unbraid.studies.study_ranking import rank_study, ranking_options
from unbraid.studies.study_record import StudyProgress, StudyRecord
from unbraid.studies.study_table import results

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Study(StudyRecord):
    """A study and its folder.

    Example:
        study = Study.load("study.yaml", out="study/")
        study.run()
        study.results().sort_values("mig.score")
        study.rank().best
    """

    @classmethod
    def load(cls, path: str | Path, out: str | Path | None = None, *, trust: Collection[str] = ()) -> "Study":
        """Open a study by its YAML file or by its folder.

        Networks and metrics of one's own ("my_lab.nets:pair") are executed where the YAML is a file of the user's. The
        copy that a folder holds may be anybody's: what it names is executed only where it is named here as well.

        Args:
            path: the YAML file, or a folder that `run` made; also the address of one in an object store.
            out: the folder of results, for a YAML file, or such as s3://bucket/prefix; nothing is written there before
                `run`.
            trust: names of your own networks and metrics, and the path of your own images, which the YAML in a folder
                may name.

        Raises:
            FileNotFoundError: there is no such file or folder, or the folder is not that of a study.
            ValueError: the YAML is not that of a study; the line names the key. Or the folder is of another version,
                or of `unbraid fit`.
        """
        path = local_folder(path)
        own = not path.is_dir()
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file or folder")
        if not own:
            check_not_fitted(path)
        if not own and out is not None:
            raise ValueError(f"{path} is a folder of results already; out is for a YAML file")
        file = path if own else path / store.YAML
        if not own and not file.is_file():
            raise FileNotFoundError(f"{path.absolute()}: not the folder of a study; there is no {store.YAML}")
        config, text = read_study(file)
        folder = path if not own else local_folder(out, new=True) if out is not None else None
        study = Study(config.trusting(None if own else trust), folder, text)
        study.check_folder()
        return study

    def run(
        self,
        executor: str | None = None,
        *,
        retry: Literal["failed"] | None = None,
        retrain: bool = False,
        shard: str | None = None,
        progress: Callable[[StudyProgress], None] | None = None,
        **options: Any,
    ) -> Sequence[RunView]:
        """Train and score what is not done yet; called again, it continues.

        Args:
            executor: a name in `unbraid.studies.executors.EXECUTORS`; by default that of the YAML, or "local".
            retry: "failed": run again what failed before, runs and metrics.
            retrain: train models again whose training version has changed since the study began; otherwise that is an
                error. Models of different versions are never in one table.
            shard: "2/8": only the second of eight shards; several can run on one folder at the same time.
            progress: called with a `StudyProgress` about twice a second.
            **options: of the executor; they come before those of the YAML.

        Returns:
            All runs of the study, those that failed among them.

        Raises:
            ValueError: an impossible setting, or another process works on the folder.
            OSError: no room for the results.
            ImportError: pandas, or what the executor or a tracker needs, is not installed.
            KeyboardInterrupt: stopped; checkpoints are saved.
        """
        name, options = self.config.executor_with(executor, options)
        part = None if shard is None else parse_shard(shard)
        return run_study(self, name, retry=retry, retrain=retrain, shard=part, progress=progress, options=options).runs

    def runs(self) -> Sequence[RunView]:
        """Every run of the YAML, with its state."""
        return self.snapshot().runs

    def results(self) -> "pandas.DataFrame":
        """One row per run (a pandas DataFrame); see `unbraid.studies.study_table` for the columns."""
        return results(self.snapshot())

    def compare(
        self,
        by: str = "family",
        columns: str | Sequence[str] | None = None,
        *,
        over: Literal["runs", "settings"] = "runs",
        within: str | None = None,
        confidence: float = 0.95,
        progress: Progress | None = None,
    ) -> Comparison:
        """Compare the scores of groups of runs, computed on equally many rows of each run.

        Args:
            by, columns, over, confidence: as for `unbraid.scoring.group_comparison.compare_groups`.
            within: column of which groups that are compared have one value; by default groups are compared whatever
                they have there.
            progress: called as progress("scoring as many rows", done, all) where some runs have more rows than others.

        Raises:
            ValueError: as `compare_groups`.
        """
        return compare_runs(
            self.snapshot(), by, columns, over=over, within=within, confidence=confidence, progress=progress
        )

    def baselines(self) -> "pandas.DataFrame":
        """Scores of baselines without training on the images of the study, where its YAML says `baselines: true`.

        One row for each random projection, PCA and untrained network: `baseline`, `codes` (how many), `id` (its folder
        within `baselines/`), `runs` (how many are held against it), and the headline of each metric.
        """
        import pandas

        rows = scored_baselines(self.snapshot())
        columns = dict.fromkeys(["baseline", "codes", "id", "runs", *(name for row in rows for name in row["scores"])])
        cells = [{**row, **row["scores"]} for row in rows]
        return pandas.DataFrame(cells, columns=list(columns))

    def rank(self, *, progress: Progress | None = None, **options: Any) -> Ranking:
        """Rank the finished runs without labels.

        Args:
            progress: called as progress("comparing models", done, all), in models.
            **options: of `RankingOptions`; those not given are as the YAML says.

        Raises:
            NothingToRank: no two runs can be compared; the message gives the reasons.
            ValueError: an option is out of range.
            OSError: the study is in an object store that cannot be written.
        """
        snapshot = self.snapshot()
        chosen = replace(ranking_options(snapshot.config), **options)
        with changing(snapshot.folder):
            return rank_study(snapshot, chosen, progress=progress)

    def _repr_html_(self) -> str:
        known = self.folder is not None and self.folder.is_dir()
        return table(self.config.name, results(self.snapshot()) if known else None)


@contextmanager
def open_study(where: str | Path, out: str | Path | None = None, *, trust: Collection[str] = ()) -> Iterator[Study]:
    """Open a study for as long as the block runs; at its end, what changed goes up where the study is in a store.

    Args and Raises: as `Study.load`; and OSError where the store cannot be reached any more.
    """
    study = Study.load(where, out, trust=trust)
    with nullcontext() if study.folder is None else changing(study.folder):
        yield study
