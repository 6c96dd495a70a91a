"""held_out.json of a run that was trained without some images: only the answers that it lacks are computed."""

import hashlib
import json
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets.subset import SubsetDataset
from unbraid.files.json_records import read_record
from unbraid.runs.folder import read_folder
from unbraid.runs.run import open_run
from unbraid.studies import store
from unbraid.studies.holdout.evaluation import Encode, evaluate_heads, evaluate_regressors
from unbraid.studies.study_json import AnswersRecord

ANSWERS = "held_out.json"

# What a run is asked, as plain data: `kind` ("compositional" or "zero_shot"), `of` (the run that saw all images),
# `split`, `number` (within the split), `name`, `without` (of the hold-out), `terms` (what else decides the answer).
Question: TypeAlias = Mapping[str, Any]


def complete_answers(
    folder: Path, questions: Iterable[Question], dataset: FactorDataset, trust: Collection[str] = ()
) -> None:
    """Compute the answers that held_out.json of a finished run lacks.

    Args:
        folder: of the run.
        questions: to ask.
        dataset: what the run was trained on, by `unbraid.datasets.leave_out`.
        trust: as for `load_run`.

    Raises:
        ValueError: a question that cannot be answered.
    """
    device = read_folder(folder)[0]["device"]
    encode = open_run(folder, device=device, trust=trust).encode
    for question in missing_answers(read_answers(folder), questions):
        answer = {"question": dict(question), **_answer(encode, dataset, question)}
        store.write_json(folder / ANSWERS, {**read_answers(folder), question_id(question): answer})


def missing_answers(answers: Mapping[str, Any], questions: Iterable[Question]) -> list[Question]:
    """The questions that held_out.json has no answer to."""
    return [question for question in questions if question_id(question) not in answers]


def question_id(question: Question) -> str:
    """A digest of the question."""
    canonical = json.dumps(question, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def read_answers(folder: str | Path) -> dict[str, Any]:
    """The content of held_out.json, answers by question; {} where there is none, with a warning where it is damaged."""
    path = Path(folder) / ANSWERS
    try:
        return read_record(path, AnswersRecord) if path.exists() else {}
    except ValueError as error:
        warnings.warn(f"{error}; it counts as missing, and study run computes it again", stacklevel=2)
        return {}


def _answer(encode: Encode, dataset: FactorDataset, question: Question) -> dict[str, Any]:
    if not isinstance(dataset, SubsetDataset):
        raise TypeError("only a run that was trained without some images can be asked about them")
    return _ANSWERS[question["kind"]](encode, dataset, **question["terms"])


def _of_heads(
    encode: Encode, part: SubsetDataset, factors: list[str], n_rows: int, seed: int, **_: Any
) -> dict[str, Any]:
    answers = evaluate_heads(encode, part, factors, n_rows=n_rows, seed=seed)
    return {
        "accuracy": {head: values.tolist() for head, values in answers.accuracy.items()},
        "chance": answers.chance.tolist(),
        "n_train": answers.n_train,
        "n_test": answers.n_test,
    }


def _of_regressors(encode: Encode, part: SubsetDataset, held_out: str, n_rows: int, seed: int) -> dict[str, Any]:
    errors = evaluate_regressors(encode, part, held_out, n_rows=n_rows, seed=seed)
    names = part.space.names
    return {
        "errors": {
            regressor: {
                "gap": dict(zip(names, regressor_errors.gap.tolist(), strict=True)),
                "ordinary": dict(zip(names, regressor_errors.ordinary.tolist(), strict=True)),
            }
            for regressor, regressor_errors in errors.items()
        }
    }


_ANSWERS: Mapping[str, Callable[..., dict[str, Any]]] = {"compositional": _of_heads, "zero_shot": _of_regressors}
