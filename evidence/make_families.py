"""Draw what the codes of each family do: docs/images/families/NAME.png.

python evidence/make_families.py [NAME ...]    a minute or two each on one core; by default those that have no picture yet

Models are small and trained briefly, on arrows that turn and change their hue: what a family does, not how well.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

import unbraid
from unbraid.families import FAMILIES
from unbraid.runs.run_traversals import traverse
from unbraid.show import plot_traversals

FOLDER = Path(__file__).parents[1] / "docs" / "images" / "families"
DATASET = {"name": "arrow", "shrink": 2}
STEPS, CODES = 1500, 4
SMALL: dict[str, Any] = {"network": "dense", "learning_rate": 2e-3, "latents": 4, "reconstruction_weight": 4}
# What a family asks for beyond that, or cannot take.
OWN: dict[str, dict[str, Any]] = {
    "factor_vae": {"discriminator_width": 128, "discriminator_depth": 3},
    "qlae": {"weight_decay": 0.001, "learning_rate": 5e-4},
    "qvae": {"learning_rate": 1e-3},
    "cci_vae": {"c_max": 12.0, "capacity_steps": 500.0, "gamma": 30.0},
}


def main(names: list[str]) -> None:
    """Draw these, or those that are missing."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or [name for name in FAMILIES if not (FOLDER / f"{name}.png").exists()]:
        known = FAMILIES[name].hyperparameters
        settings = {key: value for key, value in (SMALL | OWN.get(name, {})).items() if key in known}
        with tempfile.TemporaryDirectory() as folder:
            try:
                (run,) = unbraid.train(
                    name, DATASET, steps=STEPS, out=folder, processes=0, device="auto", precision="float32", **settings
                )
            except ValueError as reason:
                print(f"{name}: not drawn; {reason}")
                continue
            found = traverse(run, rows=2, steps=9, shown=18)
            figure = plot_traversals(
                found.images[:CODES], found.originals, found.reconstructions, captions=found.captions[:CODES],
                marked=None if found.informative is None else found.informative[:CODES].tolist(), scale=1.25,
            )  # fmt: skip
            path = FOLDER / f"{name}.png"
            figure.savefig(path)
            with Image.open(path) as image:
                image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
