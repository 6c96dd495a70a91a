"""The table of datasets: the one source for `load`, the command line, the documentation and the tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from unbraid.datasets.airplane import SPACE as AIRPLANE_SPACE
from unbraid.datasets.airplane import open_airplane
from unbraid.datasets.airplanes import airplanes_space, open_airplanes
from unbraid.datasets.arrow import arrow_space, open_arrow
from unbraid.datasets.base import FactorDataset, ImageShape
from unbraid.datasets.cars import cars_space, open_cars_rendered
from unbraid.datasets.flatland import flatland_space, open_flatland
from unbraid.datasets.shapes3d import SPACE as SHAPES3D_SPACE
from unbraid.datasets.shapes3d import open_shapes3d_rendered
from unbraid.datasets.sprites import open_sprites, sprites_space
from unbraid.datasets.square import open_square, square_space
from unbraid.datasets.teapot import EMPTY as TEAPOT_SPACE
from unbraid.datasets.teapot import open_teapot
from unbraid.datasets.turntable import open_turntable, turntable_space
from unbraid.factors import FactorTable, Space


@dataclass(frozen=True)
class OfficialFile:
    """A file that others publish, as the user is told to get it."""

    name: str  # file name, as its authors publish it
    address: str  # where to get it
    size: int | None = None  # bytes, where known
    sha256: str = ""
    md5: str = ""  # only where no SHA-256 is known
    downloads: bool = False  # fetched on request; otherwise by hand, as `address` tells


@dataclass(frozen=True)
class Dataset:
    """One row: how to open a dataset, and what it holds with its default options.

    `open(root, *, progress=None, **options)` takes the cache folder of all datasets and gives a FactorDataset.
    Its named options are those of `load`, and its docstring describes them.
    """

    open: Callable[..., FactorDataset]
    title: str
    rendered: bool  # drawn by this package: exact factors and no files, but nobody else's images
    space: Space  # of a set that is no grid: a FactorTable without rows, for names and kinds
    image_shape: ImageShape
    source: str  # who made the images, or which published set a rendered one follows
    licence: str  # of the images
    n_images: int = 0  # of a set that is no grid
    files: tuple[OfficialFile, ...] = ()
    notes: tuple[str, ...] = ()  # what a user must know before quoting a number on it

    def __len__(self) -> int:
        return self.n_images if isinstance(self.space, FactorTable) else len(self.space)


OURS = "BSD-3-Clause, as this package"

DATASETS: Mapping[str, Dataset] = MappingProxyType(
    {
        "sprites": Dataset(
            open_sprites,
            title="White squares, ellipses and hearts on black",
            rendered=True,
            space=sprites_space(),
            image_shape=(64, 64, 1),
            source="follows dSprites (Matthey et al. 2017), by a rule calibrated on 12 of its images",
            licence=OURS,
            notes=(
                "Quote it as sprites, not as dSprites: a few border pixels differ.",
                "Orientation 39 is orientation 0 again, as in dSprites: its step is 1/39 of a turn. "
                "drop_duplicate_orientation=True leaves it out.",
                "A square looks the same after a quarter turn and an ellipse after half a turn.",
            ),
        ),
        "square": Dataset(
            open_square,
            title="A white block on a black square with joined edges",
            rendered=True,
            space=square_space(),
            image_shape=(64, 64, 1),
            source="Square of LSBD (Tonnaer et al. 2022, appendix E), which is generated likewise",
            licence=OURS,
        ),
        "arrow": Dataset(
            open_arrow,
            title="An arrow that turns and changes its hue",
            rendered=True,
            space=arrow_space(),
            image_shape=(64, 64, 3),
            source="follows Arrow of LSBD (Tonnaer et al. 2022, appendix E), with an arrow of our own",
            licence=OURS,
        ),
        "airplane": Dataset(
            open_airplane,
            title="An airplane that turns around the vertical axis and changes its hue",
            rendered=True,
            space=AIRPLANE_SPACE,
            image_shape=(64, 64, 3),
            source="follows Airplane of LSBD (Tonnaer et al. 2022, appendix E), with an airplane of our own",
            licence=OURS,
        ),
        "airplanes": Dataset(
            open_airplanes,
            title="Many airplanes, each turned once around the vertical axis",
            rendered=True,
            space=airplanes_space(),
            image_shape=(64, 64, 3),
            source="follows the ModelNet40 airplanes of LSBD (Tonnaer et al. 2022), with airplanes of our own",
            licence=OURS,
            notes=("Quote it as rendered airplanes, not as ModelNet40. Its airplanes are in colour.",),
        ),
        "turntable": Dataset(
            open_turntable,
            title="Vases, jugs and totems, each turned once on a turntable",
            rendered=True,
            space=turntable_space(),
            image_shape=(64, 64, 3),
            source="follows COIL-100 (Nene et al. 1996), with objects of our own",
            licence=OURS,
            notes=("Quote it as turntable, not as COIL-100: no photograph is in it.",),
        ),
        "cars_rendered": Dataset(
            open_cars_rendered,
            title="Cars from all sides and four heights",
            rendered=True,
            space=cars_space(),
            image_shape=(64, 64, 3),
            source="follows 3D Cars (Reed et al. 2015), with cars of our own",
            licence=OURS,
            notes=("Quote it as rendered cars, not as 3D Cars. Colour belongs to the object and is no factor.",),
        ),
        "teapot": Dataset(
            open_teapot,
            title="A teapot at random angles and of random colours",
            rendered=True,
            space=TEAPOT_SPACE,
            image_shape=(64, 64, 3),
            n_images=20_000,
            source="follows the teapots of DCI (Eastwood and Williams 2018, section 4.1)",
            licence=f"{OURS}; the teapot is Martin Newell's of 1975, whose control points are public",
            notes=(
                "Quote it as rendered teapots: the authors' set has 200 000 images from another renderer; "
                "n_images=200000 draws as many.",
                "Azimuth comes back to its start after a turn, though its kind is continuous.",
                "A teapot whose red, green and blue are all near 0 is black on black but for its highlight.",
            ),
        ),
        "shapes3d_rendered": Dataset(
            open_shapes3d_rendered,
            title="An object in a coloured room",
            rendered=True,
            space=SHAPES3D_SPACE,
            image_shape=(64, 64, 3),
            source="follows 3D Shapes (Burgess and Kim 2018), in a room of our own",
            licence=OURS,
            notes=("Quote it as rendered shapes, not as 3D Shapes: light, camera and proportions differ.",),
        ),
        "flatland": Dataset(
            open_flatland,
            title="A white ball that an agent moves up, down, left and right",
            rendered=True,
            space=flatland_space(),
            image_shape=(64, 64, 1),
            source="Flatland (Caselles-Dupré et al. 2019) on the grid of Quessard et al. 2020",
            licence=OURS,
            notes=(
                "The ball jumps from the last position of an axis to the first; it is never cut by the edge.",
                "Steps have one exact length; in the simulation of Caselles-Dupré the cycle is only nearly exact.",
            ),
        ),
    }
)
