"""What can be done with a study; nothing else of studies imports this."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unbraid.analysis.ranking import Ranking
from unbraid.studies.execution import run_study
from unbraid.studies.page import table
from unbraid.studies.record import StudyProgress, StudyRecord, StudyRun
from unbraid.studies.results import results
from unbraid.studies.schema import read
from unbraid.studies.shards import parse_shard
from unbraid.studies.storage import store
from unbraid.studies.storage.remote import local_folder
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
            FileNotFoundError: there is no such file, or the folder is not that of a study.
            ValueError: the YAML is not that of a study; the line names the key. Or the folder is of another version.
        """
        path = local_folder(path)
        folder = local_folder(out, new=True) if out is not None else None
        own = not path.is_dir()
        if path.is_dir():
            if out is not None:
                raise ValueError(f"{path} is a folder of results already; out is for a YAML file")
            folder = path
            path = folder / store.YAML
            if not path.is_file():
                raise FileNotFoundError(f"{folder}: not the folder of a study; there is no {store.YAML}")
        if folder is not None:
            store.check_folder(folder)
        config, text = read(path)
        return cls(config.trusting(None if own else trust), folder, text)

    def run(
        self,
        executor: str | None = None,
        *,
        retry: Literal["failed"] | None = None,
        retrain: bool = False,
        shard: str | None = None,
        progress: Callable[[StudyProgress], None] | None = None,
        **options: Any,
    ) -> list[StudyRun]:
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
            ValueError: an impossible setting, or another process is at work on the folder.
            OSError: no room for the results.
            KeyboardInterrupt: stopped; checkpoints are saved.
        """
        name, options = self.config.executor_with(executor, options)
        part = None if shard is None else parse_shard(shard)
        return run_study(self, name, retry=retry, retrain=retrain, shard=part, progress=progress, options=options)

    def results(self) -> "pandas.DataFrame":
        """One row per run (a pandas DataFrame); see `unbraid.studies.results` for the columns."""
        return results(self)

    def rank(self, *, progress: Progress | None = None, **options: Any) -> Ranking:
        """Rank the finished runs without labels.

        Args:
            progress: called as progress("comparing models", done, all), in models.
            **options: of `RankingOptions`; those not given are as the YAML says.

        Raises:
            NothingToRank: no two runs can be compared; the message gives the reasons.
            ValueError: an option is out of range.
        """
        return rank_study(self, replace(ranking_options(self), **options), progress=progress)

    def _repr_html_(self) -> str:
        known = self.folder is not None and self.folder.is_dir()
        return table(self, results(self) if known else None)
