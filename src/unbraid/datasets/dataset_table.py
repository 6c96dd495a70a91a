"""The table of datasets: the one source for `load`, the command line, the documentation and the tests."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.plugins import Table
from unbraid.data import FactorTable, Space
from unbraid.data.image_dataset import FactorDataset, ImageShape, ReadingProgress
from unbraid.datasets.airplane import SPACE as AIRPLANE_SPACE
from unbraid.datasets.airplane import open_airplane
from unbraid.datasets.airplanes import SPACE as AIRPLANES_SPACE
from unbraid.datasets.airplanes import open_airplanes
from unbraid.datasets.arrow import Arrow
from unbraid.datasets.cars import cars_space, open_cars_rendered
from unbraid.datasets.flatland import Flatland
from unbraid.datasets.official import (
    cars3d,
    celeba,
    chairs3d,
    coil100,
    dsprites,
    faces3d,
    modelnet40,
    mpi3d,
    shapes3d,
    teapots,
)
from unbraid.datasets.official_files import OfficialFile
from unbraid.datasets.shapes3d_rendered import SPACE as SHAPES3D_SPACE
from unbraid.datasets.shapes3d_rendered import open_shapes3d_rendered
from unbraid.datasets.sprites import open_sprites, sprites_space
from unbraid.datasets.square import Square
from unbraid.datasets.teapot import EMPTY as TEAPOT_SPACE
from unbraid.datasets.teapot import open_teapot
from unbraid.datasets.turntable import SPACE as TURNTABLE_SPACE
from unbraid.datasets.turntable import open_turntable


@dataclass(frozen=True)
class Dataset:
    """One row: how to open a dataset, and what it holds with its default options.

    `open(root, *, progress=None, **options)` takes the cache folder of all datasets and gives a FactorDataset.
    Its named options are those of `load`, and its docstring describes them.
    """

    open: Callable[..., FactorDataset]
    title: str
    space: Space  # of a set that is no grid: a FactorTable without rows, for names and kinds
    image_shape: ImageShape
    source: str  # who made the images, or which published set a rendered one follows
    licence: str  # of the images
    cites: tuple[str, ...] = ()  # keys of references.bib, the paper to cite first in front
    rendered: bool = False  # drawn by this package: exact factors and no files, but nobody else's images
    n_images: int = 0  # of a set that is no grid
    files: tuple[OfficialFile, ...] = ()
    notes: tuple[str, ...] = ()  # what a user must know before quoting a number on it

    def __len__(self) -> int:
        return self.n_images if isinstance(self.space, FactorTable) else len(self.space)


def on_demand(images: Callable[..., FactorDataset]) -> Callable[..., FactorDataset]:
    """What opens a set of which nothing is stored: its class, whose docstring describes the options."""

    @wraps(images, updated=())
    def opener(root: Path, *, progress: ReadingProgress | None = None, **options: Any) -> FactorDataset:  # noqa: ARG001
        return images(**options)

    return opener


OURS = "BSD-3-Clause, as this package"
MPI3D_RELEASES = (
    "Say which release: release='final' (1 036 800 images) is this one, release='early' has 460 800. "
    "No release has the 103 680 that is sometimes quoted."
)

# Most rows are one of these; what a row gives itself goes first.
IN_COLOUR = partial(Dataset, image_shape=(64, 64, 3))
DRAWN = partial(IN_COLOUR, rendered=True, licence=OURS)
MPI3D = partial(IN_COLOUR, source="Gondal et al. 2019", cites=("gondal2019transfer",), licence="CC BY 4.0")

DATASETS: Table[Dataset] = Table(
    {
        "sprites": DRAWN(
            open_sprites,
            title="White squares, ellipses and hearts on black",
            space=sprites_space(),
            image_shape=(64, 64, 1),
            source="follows dSprites (Matthey et al. 2017), by a rule fitted to 12 of its images",
            cites=("matthey2017dsprites",),
            notes=(
                "Quote it as sprites, not as dSprites: 12 official images are these to the pixel, and all have as many "
                "white pixels together, 128 328 862; border pixels of any other image may differ.",
                "Orientation 39 is orientation 0 again, as in dSprites: its step is 1/39 of a turn. "
                "drop_duplicate_orientation=True leaves it out.",
                "A square looks the same after a quarter turn and an ellipse after half a turn.",
            ),
        ),
        "square": DRAWN(
            on_demand(Square),
            title="A white block on a black square with joined edges",
            space=Square().space,
            image_shape=(64, 64, 1),
            source="Square of LSBD (Tonnaer et al. 2022, appendix E), which is generated likewise",
            cites=("tonnaer2022quantifying",),
        ),
        "arrow": DRAWN(
            on_demand(Arrow),
            title="An arrow that turns and changes its hue",
            space=Arrow().space,
            source="follows Arrow of LSBD (Tonnaer et al. 2022, appendix E), with arrow and colours as in its figure 3",
            cites=("tonnaer2022quantifying",),
        ),
        "airplane": DRAWN(
            open_airplane,
            title="An airplane that turns around the vertical axis and changes its hue",
            space=AIRPLANE_SPACE,
            source="follows Airplane of LSBD (Tonnaer et al. 2022, appendix E), with an airplane of our own",
            cites=("tonnaer2022quantifying",),
        ),
        "airplanes": DRAWN(
            open_airplanes,
            title="Many airplanes, each turned once around the vertical axis",
            space=AIRPLANES_SPACE,
            source="follows the ModelNet40 airplanes of LSBD (Tonnaer et al. 2022), with airplanes of our own",
            cites=("tonnaer2022quantifying", "wu2015shapenets"),
            notes=("Quote it as rendered airplanes, not as ModelNet40. Its airplanes are in colour.",),
        ),
        "turntable": DRAWN(
            open_turntable,
            title="Vases, jugs and totems, each turned once on a turntable",
            space=TURNTABLE_SPACE,
            source="follows COIL-100 (Nene et al. 1996), with objects of our own",
            cites=("nene1996columbia",),
            notes=("Quote it as turntable, not as COIL-100: no photograph is in it.",),
        ),
        "cars_rendered": DRAWN(
            open_cars_rendered,
            title="Cars from all sides and four heights",
            space=cars_space(),
            source="follows 3D Cars (Reed et al. 2015), with cars of our own",
            cites=("reed2015deep",),
            notes=("Quote it as rendered cars, not as 3D Cars. Colour belongs to the object and is no factor.",),
        ),
        "teapot": DRAWN(
            open_teapot,
            title="A teapot at random angles and of random colours",
            space=TEAPOT_SPACE,
            n_images=20_000,
            source="follows the teapots of DCI (Eastwood and Williams 2018, section 4.1)",
            cites=("eastwood2018framework", "newell1975utilization"),
            licence=f"{OURS}; the teapot is Martin Newell's of 1975, whose control points are public",
            notes=(
                "Quote it as rendered teapots: the authors' set has 200 000 images from another renderer; "
                "n_images=200000 draws as many.",
                "Azimuth comes back to its start after a turn, though its kind is continuous.",
                "A teapot whose red, green and blue are all near 0 is black on black but for its highlight.",
            ),
        ),
        "shapes3d_rendered": DRAWN(
            open_shapes3d_rendered,
            title="An object in a coloured room",
            space=SHAPES3D_SPACE,
            source="follows 3D Shapes (Burgess and Kim 2018), in a room of our own",
            cites=("burgess2018shapes",),
            notes=("Quote it as rendered shapes, not as 3D Shapes: light, camera and proportions differ.",),
        ),
        "flatland": DRAWN(
            on_demand(Flatland),
            title="A white ball that an agent moves up, down, left and right",
            space=Flatland().space,
            image_shape=(64, 64, 1),
            source="Flatland (Caselles-Dupré et al. 2019) on the grid of Quessard et al. 2020",
            cites=("caselles2019symmetry", "quessard2020learning"),
            notes=(
                "The ball jumps from the last position of an axis to the first; it is never cut by the edge.",
                "Steps have one exact length; in the simulation of Caselles-Dupré the cycle is only nearly exact.",
            ),
        ),
        "dsprites": Dataset(
            dsprites.open_dsprites,
            title="White squares, ellipses and hearts on black",
            space=dsprites.SPACE,
            image_shape=(64, 64, 1),
            source="Matthey, Higgins, Hassabis and Lerchner 2017",
            cites=("matthey2017dsprites",),
            licence="Apache-2.0 (its repository)",
            files=dsprites.FILES,
            notes=(
                "Orientation 39 is orientation 0 again: its step is 1/39 of a turn. "
                "drop_duplicate_orientation=True leaves it out.",
                "A square looks the same after a quarter turn and an ellipse after half a turn.",
                "Images have 255 where the file has 1; the constant colour, its first factor, is left out.",
            ),
        ),
        "shapes3d": IN_COLOUR(
            shapes3d.open_shapes3d,
            title="An object in a coloured room",
            space=shapes3d.SPACE,
            source="Burgess and Kim 2018",
            cites=("burgess2018shapes",),
            licence="Apache-2.0 (its repository)",
            files=shapes3d.FILES,
            notes=("Orientation goes from -30 to 30 degrees and does not close the circle.",),
        ),
        "mpi3d_toy": MPI3D(
            mpi3d.open_mpi3d_toy,
            title="An object on a robot arm, drawn simply",
            space=mpi3d.SPACE,
            files=(mpi3d.FINAL_FILES["mpi3d_toy"], mpi3d.EARLY_FILES["mpi3d_toy"]),
            notes=(MPI3D_RELEASES,),
        ),
        "mpi3d_realistic": MPI3D(
            mpi3d.open_mpi3d_realistic,
            title="An object on a robot arm, drawn realistically",
            space=mpi3d.SPACE,
            files=(mpi3d.FINAL_FILES["mpi3d_realistic"], mpi3d.EARLY_FILES["mpi3d_realistic"]),
            notes=(MPI3D_RELEASES,),
        ),
        "mpi3d_real": MPI3D(
            mpi3d.open_mpi3d_real,
            title="An object on a robot arm, photographed",
            space=mpi3d.SPACE,
            files=(mpi3d.FINAL_FILES["mpi3d_real"],),
        ),
        "mpi3d_real_complex": MPI3D(
            mpi3d.open_mpi3d_real_complex,
            title="A cup, ball or croissant on a robot arm, photographed",
            space=mpi3d.COMPLEX,
            files=(mpi3d.COMPLEX_FILE,),
        ),
        "cars3d": IN_COLOUR(
            cars3d.open_cars3d,
            title="Cars from all sides and four heights",
            space=cars3d.SPACE,
            source="Reed, Zhang, Zhang and Lee 2015",
            cites=("reed2015deep",),
            licence="none stated",
            files=cars3d.FILES,
            notes=(
                "Objects are in the order of the archive's list.txt; code that takes them in the order of the folder "
                "numbers them otherwise.",
                "Scaled from 128 x 128 by Lanczos resampling. The archive has 183 objects; 199 is quoted as well.",
            ),
        ),
        "teapots_official": IN_COLOUR(
            teapots.open_teapots_official,
            title="A teapot at random angles and of random colours",
            space=TEAPOT_SPACE,
            n_images=teapots.N_IMAGES,
            source="Eastwood and Williams 2018",
            cites=("eastwood2018framework",),
            licence="none stated",
            files=teapots.FILES,
            notes=("Azimuth comes back to its start after a turn, though its kind is continuous.",),
        ),
        "coil100": IN_COLOUR(
            coil100.open_coil100,
            title="A hundred objects on a turntable, photographed",
            space=coil100.SPACE,
            source="Nene, Nayar and Murase 1996",
            cites=("nene1996columbia",),
            licence="non-commercial research",
            files=coil100.FILES,
            notes=("Scaled from 128 x 128 by Lanczos resampling.",),
        ),
        "modelnet40_airplanes": IN_COLOUR(
            modelnet40.open_modelnet40_airplanes,
            title="The airplanes of ModelNet40, each turned once around the vertical axis",
            rendered=True,
            space=modelnet40.SPACE,
            source="Wu et al. 2015 (meshes), drawn by this package",
            cites=("wu2015shapenets", "tonnaer2022quantifying"),
            licence="academic research only",
            files=modelnet40.FILES,
            notes=("The meshes are official and the images are not: LSBD drew its own from them.",),
        ),
        "chairs3d": Dataset(
            chairs3d.open_chairs3d,
            title="Chairs from two heights all around",
            space=chairs3d.SPACE,
            image_shape=(64, 64, 1),
            source="Aubry et al. 2014",
            cites=("aubry2014seeing",),
            licence="research; none stated",
            files=chairs3d.FILES,
            notes=("Grey, from the middle 400 x 400 of 600 x 600 pixels; preprocessing='resize' takes them all.",),
        ),
        "celeba": IN_COLOUR(
            celeba.open_celeba,
            title="Faces of celebrities with forty yes-or-no attributes",
            space=FactorTable(celeba.NAMES, celeba.KINDS, np.empty((0, len(celeba.NAMES)))),
            n_images=celeba.N_IMAGES,
            source="Liu, Luo, Wang and Tang 2015",
            cites=("liu2015faceattributes",),
            licence="non-commercial research",
            files=celeba.FILES,
            notes=(
                "Attributes are labels that people gave, not factors that made the images.",
                "The whole image scaled to a square; preprocessing='crop' takes the middle 148 x 148 pixels instead.",
            ),
        ),
        "faces3d": Dataset(
            faces3d.open_faces3d,
            title="Faces of the Basel model under changing view and light",
            space=faces3d.SPACE,
            image_shape=(64, 64, 1),
            source="Paysan et al. 2009 (the face model); the renders of Chen et al. 2018",
            cites=("paysan2009face", "chen2018isolating"),
            licence="Basel Face Model licence: not to be handed on",
            files=faces3d.FILES,
        ),
    },
    "unbraid.datasets",
    lambda row: isinstance(row, Dataset),
    "dataset",
)
