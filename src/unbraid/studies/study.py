"""`Study`: load, run, rank, compare. Of this folder, only modules that add to a study import it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unbraid.base.types import Progress
from unbraid.files.remote import changing, local_folder
from unbraid.ranking.ranking import Ranking
from unbraid.runs.foreign_models import check_not_fitted
from unbraid.scoring.group_comparison import Comparison
from unbraid.scoring.result_columns import together
from unbraid.studies import store
from unbraid.studies.execution import run_study
from unbraid.studies.schema import StudyConfig
from unbraid.studies.several_datasets import all_results, check_home, read
from unbraid.studies.shards import parse_shard
from unbraid.studies.snapshot import RunView, StudySnapshot
from unbraid.studies.study_baselines import scored_baselines
from unbraid.studies.study_comparison import compare_runs
from unbraid.studies.study_page import table
from unbraid.studies.study_ranking import rank_study, ranking_options
from unbraid.studies.study_record import InFolder, StudyPart, StudyProgress
from unbraid.studies.study_table import results

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Study(InFolder):
    """A study of one dataset or several, and its folder.

    Methods for one dataset have the argument `dataset`, its label; a study of one dataset does not need it. `config` is
    that of the first dataset, without the keys by which that overrides the study's own.

    Example:
        study = Study.load("study.yaml", out="study/")
        study.run()
        study.results().sort_values("mig.score")
        study.rank().best
    """

    config: StudyConfig
    folder: Path | None
    text: str  # the YAML
    parts: Mapping[str, StudyPart]  # by label; of a study of one dataset under ""

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
        config, text, parts = read(file)
        names = None if own else trust
        folder = path if not own else local_folder(out, new=True) if out is not None else None
        opened = {
            part.label: replace(part, config=part.config.trusting(names), folder=folder and folder / part.label)
            for part in parts
        }
        if folder is not None and "" not in opened:
            check_home(folder)
        for part in opened.values():
            part.check_folder()
        return Study(config.trusting(names), folder, text, opened)

    def part(self, dataset: str | None = None) -> StudyPart:
        """The part of the study for one dataset.

        Args:
            dataset: its label; needed where the study is of several.

        Raises:
            ValueError: there is no such label, or there are several datasets and none is named.
        """
        if dataset is None and len(self.parts) == 1:
            return next(iter(self.parts.values()))
        if dataset is not None and dataset in self.parts:
            return self.parts[dataset]
        first, known = next(iter(self.parts)), ", ".join(self.parts)
        wrong = "" if dataset is None else f"no dataset {dataset!r}: "
        raise ValueError(
            f"{wrong}the study is of {len(self.parts)} datasets, {known}; say dataset={first!r}, or take the folder of "
            f"one, such as {(self.folder or Path('study')) / first}"
        )

    def run(
        self,
        executor: str | None = None,
        *,
        retry: Literal["failed"] | None = None,
        retrain: bool = False,
        shard: str | None = None,
        progress: Callable[[StudyProgress], None] | None = None,
        **options: Any,
    ) -> list[RunView]:
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
        folder = self.require_folder()
        name, options = self.config.executor_with(executor, options)
        part = None if shard is None else parse_shard(shard)
        return run_study(
            folder, self.text, self.parts, name, retry=retry, retrain=retrain, shard=part, progress=progress,
            options=options,
        )  # fmt: skip

    def snapshot(self, dataset: str | None = None) -> StudySnapshot:
        """What the folder of a dataset holds now, each file read once.

        Args:
            dataset: as for `part`.

        Raises:
            ValueError: the study has no folder, or files in it are damaged.
        """
        return self.part(dataset).snapshot()

    def snapshots(self) -> list[StudySnapshot]:
        """`snapshot` of each dataset."""
        return [part.snapshot() for part in self.parts.values()]

    def runs(self) -> list[RunView]:
        """Every run of the YAML and every representation added, with its state."""
        return [run for snapshot in self.snapshots() for run in snapshot.runs]

    def results(self) -> "pandas.DataFrame":
        """One row per run (a pandas DataFrame); see `unbraid.studies.study_table` for the columns.

        Of several datasets a column `label` says which.
        """
        return all_results(self.snapshots())

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
            within: column of which groups that are compared have one value; by default "label" in a study of several
                datasets, unless `by` tells these apart.
            progress: called as progress("scoring as many rows", done, all) where some runs have more rows than others.

        Raises:
            ValueError: as `compare_groups`.
        """
        return compare_runs(
            self.snapshots(), by, columns, over=over, within=within, confidence=confidence, progress=progress
        )

    def baselines(self) -> "pandas.DataFrame":
        """Scores of baselines without training on the images of the study, where its YAML says `baselines: true`.

        One row for each random projection, PCA and untrained network: `baseline`, `codes` (how many), `id` (its folder
        within `baselines/`), `runs` (how many are held against it), and the headline of each metric. Of several
        datasets a column `label` says which.
        """
        import pandas

        tables = {}
        for snapshot in self.snapshots():
            rows = scored_baselines(snapshot)
            names = dict.fromkeys(name for row in rows for name in row["scores"])
            cells = [{**row, **row["scores"]} for row in rows]
            tables[snapshot.label] = pandas.DataFrame(cells, columns=["baseline", "codes", "id", "runs", *names])
        return together(tables)

    def rank(self, dataset: str | None = None, *, progress: Progress | None = None, **options: Any) -> Ranking:
        """Rank the finished runs without labels.

        Args:
            dataset: as for `part`.
            progress: called as progress("comparing models", done, all), in models.
            **options: of `RankingOptions`; those not given are as the YAML says.

        Raises:
            NothingToRank: no two runs can be compared; the message gives the reasons.
            ValueError: an option is out of range.
            OSError: the study is in an object store that cannot be written.
        """
        snapshot = self.snapshot(dataset)
        chosen = replace(ranking_options(snapshot.config), **options)
        with changing(snapshot.folder):
            return rank_study(snapshot, chosen, progress=progress)

    def _repr_html_(self) -> str:
        known = self.folder is not None and self.folder.is_dir()
        return "".join(
            table(part.config.name, results(part.snapshot()) if known else None) for part in self.parts.values()
        )


@contextmanager
def open_study(where: str | Path, out: str | Path | None = None, *, trust: Collection[str] = ()) -> Iterator[Study]:
    """Open a study for as long as the block runs; at its end, what changed goes up where the study is in a store.

    Args and Raises: as `Study.load`; and OSError where the store cannot be reached any more.
    """
    study = Study.load(where, out, trust=trust)
    with nullcontext() if study.folder is None else changing(study.folder):
        yield study
