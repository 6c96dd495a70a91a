"""The suite of the leaderboard, and its tables from the records in results/."""

from textwrap import fill

from pages.results import FOLDER
from pages.texts import table
from unbraid.bench.leaderboard import models, of_set, standings
from unbraid.bench.suite import LAPTOP
from unbraid.datasets import load
from unbraid.results.files import read_all
from unbraid.storage.table_formats import table_text


def suite() -> str:
    """What it fixes, as a list and a table of its sets."""
    rows = []
    for label, options in LAPTOP.sets.items():
        dataset = load(**options)
        height, width, channels = dataset.image_shape
        factors = ", ".join(
            f"{name} ({size})" for name, size in zip(dataset.space.names, dataset.space.sizes, strict=True)
        )
        name, *others = options.values()
        told = ", ".join(f"{key}={value}" for key, value in zip(list(options)[1:], others, strict=True))
        rows.append([label, f"`{name}`, `{told}`", f"{len(dataset):,}", f"{height} × {width} × {channels}", factors])
    sets = table("set | images of | how many | size | factors and their levels", "llrll", rows)
    text = (
        f"Version {LAPTOP.version} of the suite `{LAPTOP.name}`: {LAPTOP.steps:,} steps of {LAPTOP.batch_size} images "
        f"for families of unbraid, {LAPTOP.seconds:g} seconds for one training of anybody else's encoder, seeds "
        f"{', '.join(map(str, LAPTOP.seeds))}, and {LAPTOP.shuffles} shuffles of each seed for the chance level. The "
        f"[metrics](metrics.md) are {', '.join(f'`{name}`' for name in LAPTOP.metrics)}."
    )
    return f"{fill(text, 100)}\n\n{sets}"


def tables() -> str:
    """A table for each set, and what was trained."""
    found = standings(read_all(FOLDER) if FOLDER.is_dir() else [], LAPTOP)
    if not found:
        return "There is no record of this version yet."
    parts = [f"### {label}\n\n{table_text(of_set(found, label, LAPTOP), '.md').strip()}" for label in LAPTOP.sets]
    return "\n\n".join([*parts, f"### What was trained\n\n{table_text(models(found), '.md').strip()}"])
