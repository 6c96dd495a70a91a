"""What can be done with a study; nothing else of studies imports this."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from unbraid._utils.optional import require
from unbraid._utils.signals import terminable
from unbraid.analysis.columns import together
from unbraid.analysis.comparison import Comparison
from unbraid.analysis.merging import write_table
from unbraid.ranking.ranking import Ranking
from unbraid.storage.files import atomic_write
from unbraid.storage.remote import carried_study, changing, local_folder
from unbraid.studies import store
from unbraid.studies.baselines import beside_baselines
from unbraid.studies.comparing import compare_runs
from unbraid.studies.execution import claim, needed_disk, ready, run_ready, run_study
from unbraid.studies.page import table
from unbraid.studies.record import StudyProgress, StudyRecord
from unbraid.studies.results import results
from unbraid.studies.several import all_results, check_home, naming, read
from unbraid.studies.shards import parse_shard
from unbraid.studies.snapshot import RunView, StudySnapshot
from unbraid.studies.status import keep_index
from unbraid.studies.study_ranking import rank_study, ranking_options
from unbraid.types import Progress

if TYPE_CHECKING:
    import pandas


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
        """Open a study by its YAML file or by its folder; one of several `datasets` is a `Studies`.

        Networks and metrics of one's own ("my_lab.nets:pair") are executed where the YAML is a file of the user's. The
        copy that a folder holds may be anybody's: what it names is executed only where it is named here as well.

        Args:
            path: the YAML file, or a folder that `run` made; also the address of one in an object store.
            out: the folder of results, for a YAML file, or such as s3://bucket/prefix; nothing is written there before
                `run`.
            trust: names of your own networks and metrics, and the path of your own images, which the YAML in a folder
                may name.

        Raises:
            FileNotFoundError: there is no such file, or the folder is not that of a study.
            ValueError: the YAML is not that of a study; the line names the key. Or the folder is of another version.
        """
        path = local_folder(path)
        own = not path.is_dir()
        if not own and out is not None:
            raise ValueError(f"{path} is a folder of results already; out is for a YAML file")
        file = path if own else path / store.YAML
        if not own and not file.is_file():
            raise FileNotFoundError(f"{path}: not the folder of a study; there is no {store.YAML}")
        config, text, parts = read(file)
        names = None if own else trust
        folder = path if not own else local_folder(out, new=True) if out is not None else None
        if not parts:
            study = Study(config.trusting(names), folder, text)
            study.check_folder()
            return study
        studies = {
            part.label: Study(part.config.trusting(names), folder and folder / part.label, part.text, label=part.label)
            for part in parts
        }
        if folder is not None:
            check_home(folder)
        for each in studies.values():
            each.check_folder()
        return Studies(config.trusting(names), folder, text, studies)

    def parts(self) -> "Mapping[str, Study]":
        """The study of each of its datasets, by label; of a study of one dataset that itself, under ""."""
        return {"": self}

    def alone(self) -> "Study":
        """The study itself; ValueError where it is of several datasets, for what takes one."""
        return self

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
            retry: "failed": try again what failed before, runs and metrics.
            retrain: train models anew where this version of unbraid gives other weights than the one that the study
                was begun with; otherwise that is an error. Models of both are never in one table.
            shard: "2/8": the second of eight parts alone, whatever is done of it; several may be at work on one folder.
            progress: told about twice a second.
            **options: of the executor; they come before those of the YAML.

        Returns:
            All runs of the study, those that failed among them.

        Raises:
            ValueError: an impossible setting, or somebody else is at work on the folder.
            OSError: no room for the results.
            KeyboardInterrupt: stopped; checkpoints are saved.
        """
        name, options = self.config.executor_with(executor, options)
        part = None if shard is None else parse_shard(shard)
        return run_study(self, name, retry=retry, retrain=retrain, shard=part, progress=progress, options=options)

    def results(self) -> "pandas.DataFrame":
        """One row per run (a pandas DataFrame); see `unbraid.studies.results` for the columns."""
        return results(self.snapshot())

    def snapshots(self) -> list[StudySnapshot]:
        """What the folders of its datasets hold now, each file read once."""
        return [part.snapshot() for part in self.parts().values()]

    def compare(
        self,
        by: str = "family",
        columns: Sequence[str] | None = None,
        *,
        over: Literal["runs", "settings"] = "runs",
        within: str | None = None,
        confidence: float = 0.95,
        progress: Progress | None = None,
    ) -> Comparison:
        """Compare the scores of groups of runs, on as many rows of each run.

        Args:
            by, columns, over, confidence: as for `unbraid.analysis.comparison.compare_groups`.
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
        within `baselines/`), `runs` (how many are held against it), and the headline of each metric.
        """
        rows = beside_baselines(self.snapshot())
        columns = dict.fromkeys(["baseline", "codes", "id", "runs", *(name for row in rows for name in row["scores"])])
        pandas = require("pandas", "table", "baselines of a study")
        return pandas.DataFrame([{**row, **row["scores"]} for row in rows], columns=list(columns))

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
        chosen = replace(ranking_options(self.config), **options)
        with changing(self.require_folder()):
            return rank_study(self.snapshot(), chosen, progress=progress)

    def _repr_html_(self) -> str:
        known = self.folder is not None and self.folder.is_dir()
        return table(self.config.name, self.results() if known else None)


@dataclass(frozen=True)
class Studies(Study):
    """A study of several datasets: one of each, in folders of their own below its folder.

    What takes the images of one dataset, such as a ranking, is asked of that one: `studies.datasets["sprites"].rank()`.
    `config` is that of the first dataset, but for what that has in place of the study's own keys.
    """

    datasets: Mapping[str, Study] = field(default_factory=dict)  # by label

    def parts(self) -> Mapping[str, Study]:
        return self.datasets

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
        """As `Study.run`, dataset by dataset; what cannot be right of any is said before anything is written."""
        name, options = self.config.executor_with(executor, options)
        part, folder = None if shard is None else parse_shard(shard), self.require_folder()
        told = {label: progress and _told(progress, label) for label in self.datasets}
        prepared = {}
        for number, (label, study) in enumerate(self.datasets.items()):
            with naming(number, label):
                prepared[label] = ready(study, name, retrain=retrain, progress=told[label], options=options)
        for each in prepared.values():
            needed_disk(each.tasks, each.datasets)
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(terminable())
            stack.enter_context(claim(folder, part))
            with atomic_write(folder / store.YAML) as temporary:
                temporary.write_text(self.text, encoding="utf-8")
            stack.enter_context(carried_study(folder))
            snapshots = [
                run_ready(each, name, retry=retry, shard=part, progress=told[label], options=options)
                for label, each in prepared.items()
            ]
            write_table(all_results(snapshots), folder / store.RESULTS)
        keep_index(folder, snapshots)
        return [run for each in snapshots for run in each.runs]

    def runs(self) -> list[RunView]:
        return [run for study in self.datasets.values() for run in study.runs()]

    def results(self) -> "pandas.DataFrame":
        """One row per run and a column `label`; the other columns are those of the studies of each dataset."""
        return all_results(self.snapshots())

    def baselines(self) -> "pandas.DataFrame":
        """As `Study.baselines`, with a column `label`."""
        return together({label: study.baselines() for label, study in self.datasets.items()})

    def _one_only(self, *_: Any, **__: Any) -> NoReturn:
        labels = list(self.datasets)
        one = (self.folder or Path("study")) / labels[0]
        raise ValueError(
            f"the study is of {len(labels)} datasets, {', '.join(labels)}; take one of them, such as {one}"
        )

    alone = environment = resolve_environment = dataset = rank = _one_only

    def _repr_html_(self) -> str:
        return "".join(study._repr_html_() for study in self.datasets.values())


def _told(progress: Callable[[StudyProgress], None], label: str) -> Callable[[StudyProgress], None]:
    return lambda sent: progress(replace(sent, label=label))
