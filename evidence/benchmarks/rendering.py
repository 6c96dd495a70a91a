"""Rendered sets: images per second of the rasteriser, of the room, and of composing; one thread of the CPU.

Processor time, least of several runs. The first call compiles the kernels and is not counted.
"""

import os
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from unbraid.datasets.airplanes import painted_airplane
from unbraid.datasets.arrow import hue_circle
from unbraid.datasets.cars import car_mesh
from unbraid.datasets.rendering.meshes import Mesh, teapot_mesh
from unbraid.datasets.rendering.raster import compose, orbit, render
from unbraid.datasets.rendering.renderer import MILD, Composed
from unbraid.datasets.rendering.room import room_layers
from unbraid.datasets.shapes3d_rendered import SPACE
from unbraid.datasets.teapot import SCENE
from unbraid.datasets.turntable import turntable_mesh


def rate(work: Callable[[], object], n_images: int) -> float:
    work()
    seconds = []
    for _ in range(3):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return n_images / min(seconds)


def rasteriser() -> None:
    rng = np.random.default_rng(0)
    meshes: dict[str, Mesh] = {
        "teapot, 6 segments": teapot_mesh(6),
        "teapot, 10 segments": teapot_mesh(10),
        "airplane": painted_airplane(0, 5),
        "turntable": turntable_mesh(0, 0),
        "car": car_mesh(0, 0),
    }
    print("64 x 64, images/s, by samples per pixel and axis")
    print(f"{'':<28}{'1':>9}{'2':>9}{'3':>9}")
    for name, mesh in meshes.items():
        scene = SCENE if name.startswith("teapot") else MILD
        views = orbit(rng.uniform(0, 1, 256), rng.uniform(0, 0.25, 256))
        cells = [rate(lambda s=s: render(mesh, views, scene=scene, samples=s), 256) for s in (1, 2, 3)]  # noqa: B023
        print(f"{f'{name} ({len(mesh.faces)} faces)':<28}" + "".join(f"{cell:9.0f}" for cell in cells))


def room() -> None:
    views = [(shape, scale, turn) for scale in (0.75, 1.25) for shape in range(4) for turn in (-30.0, 0.0, 30.0)]
    drawn = rate(lambda: [room_layers(*view) for view in views], len(views))
    layers = np.stack([room_layers(k % 4, 0.75 + k / 960, k / 16 - 15) for k in range(480)])
    colours = hue_circle(10) / 255
    dataset = Composed(SPACE, layers, (colours, colours, colours))
    batches = np.random.default_rng(0).integers(len(dataset), size=(64, 64))
    mixed = rate(lambda: [dataset.images(batch) for batch in batches], 4096)
    print(f"\nroom, views/s at 16 samples per pixel   {drawn:9.0f}")
    print(f"room, composed images/s, batches of 64  {mixed:9.0f}")


def one_paint() -> None:
    layers = render(teapot_mesh(6), orbit(np.arange(256) / 256, 0.05), scene=SCENE)
    colours = np.random.default_rng(0).random((256, 1, 3))
    print(f"teapot, composed images/s               {rate(lambda: compose(layers, colours), 256):9.0f}")


if __name__ == "__main__":
    rasteriser()
    room()
    one_paint()
