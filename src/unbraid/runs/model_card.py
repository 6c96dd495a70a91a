"""The model card of a run: a README.md on what the model is, how it was chosen, and its limits."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from unbraid.base.arrays import array_digest
from unbraid.base.counted import counted
from unbraid.data import Representation
from unbraid.datasets import DATASETS
from unbraid.datasets.recorded import of_everywhere
from unbraid.families.family_table import find_family
from unbraid.files.json_records import LARGEST
from unbraid.files.run_files import SCORES
from unbraid.files.score_file import SavedScores, read_scores_file
from unbraid.files.trust import trusted_in
from unbraid.files.whole_files import read_whole
from unbraid.files.yaml_files import written
from unbraid.runs.run import Run
from unbraid.scoring.model_index import model_index, scores_section
from unbraid.scoring.per_code import per_code
from unbraid.scoring.score_numbers import in_markdown, markdown_table

README = "README.md"
CHOSEN = "How it was chosen"
ALONE = "Nothing in its folder tells of other models that it was compared with or chosen from."


def model_card(
    run: Run, name: str, chosen: str = ALONE, *, folder: str | None = None, scores: Path | None = None
) -> str:
    """The text of a README.md with its front matter, as the Hugging Face Hub reads it.

    Args:
        run: finished.
        name: of the model.
        chosen: how it was chosen from others, as paragraphs in Markdown.
        folder: path in the Python lines that load it; by default the name of the run's folder.
        scores: a score card of its codes, as `ScoreCard.save` writes it; by default that of its folder, if it has one.

    Raises:
        FileNotFoundError: there is no such score card.
        ValueError: the run diverged, a file of its folder is damaged, or the scores are of other codes.
    """
    if run.status["state"] != "finished":
        raise ValueError(f"{run.path} {run.status['state']} ({run.status['reason']}): there is no model to describe")
    codes = run.codes()
    saved_scores = _scores(scores or run.path / SCORES, codes, required=scores is not None)
    own_code = ", ".join(f"`{name}`" for name in _own_code(run))
    needed = (
        f"\nIt needs this code, which is not in the folder and which Python must be able to import: {own_code}.\n"
        if own_code
        else ""
    )
    not_scored = "`unbraid score` with its folder scores it" if codes.names else "no factors of its images are known"
    sections = [
        f"# {in_markdown(name)}\n\n{_summary(run)}\n",
        f"## Load it\n\n```python\n{load_lines(run, folder or run.path.name)}```\n{needed}",
        f"## Training\n\n{markdown_table(('', ''), list(_facts(run)))}",
        f"## {CHOSEN}\n\n{chosen.strip()}\n",
        scores_section(saved_scores) if saved_scores else f"## Scores\n\nIt was not scored: {not_scored}.\n",
        f"## What each latent does\n\n{_latents(codes)}",
        "## What it does not do\n\n" + "".join(f"- {line}\n" for line in _limits(run, codes, saved_scores)),
    ]
    return f"---\n{written(_metadata(run, name, saved_scores))}---\n\n" + "\n".join(sections)


def chosen_in(folder: Path) -> str | None:
    """The section of the model card in a folder on how the model was chosen; None without one.

    Raises:
        ValueError: its README.md is not text, or too large.
    """
    try:
        text = read_whole(folder / README, LARGEST).decode("utf-8")
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{folder / README} cannot be read: {error}") from None
    match = re.search(rf"^## {CHOSEN}\n\n(.*?)\n(?=\n## |\Z)", text, re.DOTALL | re.MULTILINE)
    return None if match is None or match[1].strip() == ALONE else match[1]


def load_lines(run: Run, folder: str) -> str:
    """Python that loads the model from a folder and uses it."""
    shape, own = tuple(run.config["dataset"]["image_shape"]), _own_code(run)
    trust = f", trust={json.dumps(own)}" if own else ""
    is_image = len(shape) == 3
    images = f"np.zeros({(1, *shape)}, dtype=np.uint8)" if is_image else f"np.zeros({(1, *shape)})"
    shape_text = "(n, height, width, channels)" if is_image else "(n, n_features)"
    return (
        "import numpy as np\n"
        "import unbraid\n\n"
        f"run = unbraid.load_run({json.dumps(folder, ensure_ascii=False)}{trust})  # the folder of the model\n"
        f"codes = run.encode({images})  # {shape_text}\n"
        f"images = run.decode(codes)  # of codes (n, {run.n_codes})\n"
    )


def _own_code(run: Run) -> list[str]:
    return [str(name) for name in trusted_in([run.config["family"], run.config["hyperparameters"]])]


def data_name(config: Mapping[str, Any]) -> str:
    """The name of a training's images: not an official name if they were drawn by unbraid, and never a path."""
    name = config["dataset"]["name"]
    if name not in DATASETS:
        return "own data"
    return f"{name} (drawn by unbraid)" if DATASETS[name].rendered else name


def _summary(run: Run) -> str:
    family, shape = find_family(run.config["family"]), run.config["dataset"]["image_shape"]
    size = " x ".join(map(str, shape))
    of = f"images of {size} (height, width, channels)" if len(shape) == 3 else f"rows of {size} numbers"
    what = f"{in_markdown(family.title)} with {counted(run.n_codes, 'code')}"
    return f"{what} for {of}, trained with unbraid {run.status['unbraid']}."


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    config, made = run.config, run.status.get("provenance") or {}
    family = find_family(config["family"])
    named = "" if config["family"] in family.title else f"`{config['family']}`: "
    yield "family", f"{named}{in_markdown(family.cited)}"
    for name, value in config["hyperparameters"].items():
        changed = "" if value == family.hyperparameters[name].default else ", not the default"
        yield f"`{name}`", f"{in_markdown(value)}{changed}"
    yield from _data(config["dataset"])
    if supervision := config.get("supervision"):
        yield "supervision", ", ".join(f"{value:,} {name.replace('_', ' ')}" for name, value in supervision.items())
    yield "steps", f"{run.status['step']:,} of {config['batch_size']} images"
    if hold_out := config.get("hold_out"):
        yield "held out of training", f"{hold_out['images']:g} of the images"
    yield "seed", str(config["seed"])
    yield "precision", config["precision"]
    yield "unbraid", run.status["unbraid"] + (f", commit {made['commit']}" if made.get("commit") else "")
    if made:
        yield "trained", f"{made['ended'][:10]}, torch {made['torch']}, {made['accelerator'] or made['processor']}"


def _data(source: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    name, kind = source["name"], "images" if len(source["image_shape"]) == 3 else "rows"
    number = f"{source['n_images']:,} {kind}"
    if name not in DATASETS:
        yield "data", f"{number} that unbraid knows by no name: somebody's own, or given in memory"
        return
    row = DATASETS[name]
    options = _options(source)
    drawn = "drawn by unbraid, and not the published images; " if row.rendered else ""
    option_text = f" ({in_markdown(options)})" if options else ""
    yield "data", f"`{name}`{option_text}: {in_markdown(row.title)}; {number}; {drawn}{in_markdown(row.source)}"
    for note in row.notes:
        yield "", in_markdown(note)


def _options(source: Mapping[str, Any]) -> str:
    """Options of a dataset, without paths of its files."""
    return ", ".join(f"{key}={value}" for key, value in of_everywhere(source["options"]).items())


def _scores(path: Path, codes: Representation, *, required: bool) -> SavedScores | None:
    """The run's scores; None if it was not scored and no file is required."""
    if not required and not path.is_file():
        return None
    scores = read_scores_file(path)
    digests = scores.input.sha256
    if digests is not None and digests.codes != array_digest(codes.codes):
        raise ValueError(f"{path}: these are the scores of other codes than those of the run")
    return scores if scores.metrics else None


def _latents(codes: Representation) -> str:
    """A table of the latents: how informative each is, and about which factor."""
    signal, spread, used = codes.signal(), codes.codes.std(axis=0, dtype=float), codes.informative()
    heads, legend = ["latent", "deviation"], []
    rows = [[in_markdown(label), f"{spread[at]:.3g}"] for at, label in enumerate(codes.code_labels())]
    if signal is not None:
        heads.append("tells (nats)")
        rows = [[*row, f"{each:.2f}"] for row, each in zip(rows, signal, strict=True)]
        legend.append(
            "*Tells* is ½ log(1 + Var μ / E σ²), μ and σ of the posterior. A latent that tells less than 0.01 nats of "
            "an image is unused."
        )
    if codes.names:
        heads += ["best factor", "share", "second factor", "share", "p"]
        table = per_code(codes).to_dict("records")
        rows = [
            [*row, *(_factor_cells(each) if used is None or used[at] else [""] * 5)]
            for at, (row, each) in enumerate(zip(rows, table, strict=True))
        ]
        legend.append(
            "*Share* is the part of a factor's entropy that the latent tells, above chance. p is that of a test of "
            "independence of all factors; it is not corrected for the number of latents."
        )
    else:
        legend.append(
            "No factors are known, so that the latents have no names: move one at a time to see what it does."
        )
    return f"{markdown_table(heads, rows)}\n{' '.join(legend)}\n"


def _factor_cells(row: Mapping[str, Any]) -> list[str]:
    shares = [f"{row[each]:.2f}" if row[of] else "" for of, each in (("factor", "share"), ("second", "second_share"))]
    return [in_markdown(row["factor"]), shares[0], in_markdown(row["second"]), shares[1], f"{row['p']:.2f}"]


def _limits(run: Run, codes: Representation, scores: SavedScores | None) -> Iterator[str]:
    shape = " x ".join(map(str, run.config["dataset"]["image_shape"]))
    if run.status.get("note"):
        yield in_markdown(run.status["note"])
    yield f"It was trained on the data above alone, at {shape}, and was not tested on any other data."
    used = codes.informative()
    if codes.tells_nothing():
        yield (
            "It has collapsed or learned nothing: all its latents together have less than one bit of information on an "
            "image."
        )
    elif codes.varies_little():
        yield "It may have collapsed: none of its codes varies by more than 0.02."
    elif used is not None and not used.all():
        names = [label for label, each in zip(codes.code_labels(), used, strict=True) if not each]
        yield f"It leaves {len(names)} of {len(used)} latents unused: {in_markdown(', '.join(names))}."
    if codes.names:
        yield "A latent that tells most of one factor can tell of others too; the table says of which second one."
    else:
        yield "Nobody has named its latents. That one differs from another is no proof that it means one thing."
    yield "Order and sign of the latents are those of this training: another seed gives others."
    if not run.has_prior:
        yield "It has no prior, so that it cannot draw new images."
    if scores is not None:
        coverage = "some of them held out of training" if run.config.get("hold_out") else "on which it was trained"
        yield (
            f"The scores are of {scores.input.n_samples:,} images of these data, {coverage}, and of one training with "
            "one seed. If the model was picked for its score, new trainings will score worse on average."
        )
        yield from (f"Note on the scores: {in_markdown(note)}." for note in scores.input.notes)
    if run.config.get("supervision"):
        yield "It was trained with the supervision above; without it, training would find other latents."


def _metadata(run: Run, name: str, scores: SavedScores | None) -> dict[str, Any]:
    config = run.config
    metadata: dict[str, Any] = {
        "library_name": "unbraid",
        "tags": ["disentanglement", "representation-learning", str(config["family"])],
    }
    if len(config["dataset"]["image_shape"]) == 3:
        metadata["pipeline_tag"] = "image-feature-extraction"
    if scores is None:
        return metadata
    known, options = config["dataset"]["name"] in DATASETS, _options(config["dataset"])
    return metadata | model_index(
        scores, model=name, dataset=data_name(config), task=metadata.get("pipeline_tag", "feature-extraction"),
        config=options if known and options else None,
    )  # fmt: skip
