"""A trained model as a folder of plain files, and how to use it again."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.utils.data import Dataset

from unbraid.base.arguments import check_whole
from unbraid.base.arrays import as_array
from unbraid.base.device import choose_device, reproducible
from unbraid.base.suggest import error_line
from unbraid.base.types import ArrayLike, FloatArray
from unbraid.data import Representation
from unbraid.data.image_dataset import FactorDataset
from unbraid.families.building import Member, build_member, filled_member, structural_settings, weights_of
from unbraid.families.divergences import kl_by_quadrature
from unbraid.families.family import Family, Part, check_value, code_parts, completed
from unbraid.families.family_table import FAMILIES, find_family
from unbraid.families.networks import PairBuilder, as_floats, as_tensor
from unbraid.files.checksum import check_file
from unbraid.files.run_files import CONFIG, CURVES, HELD_OUT, SNAPSHOTS, WEIGHTS
from unbraid.files.trust import Trusted, UntrustedCode, is_called, is_code, trusted_in, trusting
from unbraid.files.whole_files import with_home
from unbraid.runs.folder import damaged, read_codes, read_folder
from unbraid.runs.foreign_models import fitted_images
from unbraid.runs.generating import between, drawn_by_parts, noise
from unbraid.scoring.baselines import Baseline
from unbraid.scoring.encoding import encoded, encoded_objects
from unbraid.scoring.pixels import baselines_of

Images: TypeAlias = FactorDataset | NDArray[Any] | Tensor | Dataset[Any]  # the last three have no factors
Records: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]  # config and status
N_CODES = 10_000  # rows of codes.safetensors, all of them in smaller datasets
BATCH = 256
PROBED = 1e-3  # of the largest code: more than rounding on another machine


def probe_images(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Two images of noise, (2, height, width, channels) or (2, n_features), always the same for a shape."""
    return np.random.default_rng(0).integers(0, 256, (2, *shape), dtype=np.uint8)


@dataclass(frozen=True, eq=False)
class Run:
    """One trained model in its folder.

    `config` says what was trained: `family`, `dataset`, `seed`, `hyperparameters` (every one of them, but those of
    TRAINING at their defaults), `steps`, `batch_size`, `device`, `precision`; where they apply, `supervision` (how much
    of it), `facts` (of the dataset's factors) and `codes` (see `parts`). `status` says how it ended: `state`
    ("finished" or "diverged", then with the `reason`), `step`, `seconds`, and `last`, the last point of the curves.
    """

    path: Path
    config: Mapping[str, Any]
    status: Mapping[str, Any]
    device: str = "auto"  # where it encodes and decodes

    def encode(self, images: ArrayLike) -> FloatArray:
        """Codes (n, n_codes) of images: posterior means, where the family has a posterior.

        Args:
            images: (n, height, width, channels) as datasets give them, uint8, or floats from 0 to 1; uint16 if the
                training images were, with their white; or the rows of a table (n, n_features).

        Raises:
            ValueError: images of another shape or type than those of the training.
        """
        return self.posterior(images)[0]

    def posterior(self, images: ArrayLike) -> tuple[FloatArray, FloatArray | None]:
        """Posterior means and log-variances (n, n_codes); None for a family without a posterior.

        Args and Raises: as `encode`.
        """
        array = as_array(images)
        shape, white = tuple(self.config["dataset"]["image_shape"]), self.config["dataset"].get("white")
        if white is not None and array.dtype.kind == "u" and array.dtype.itemsize == 2:
            array = np.minimum(array.astype(np.float32) / np.float32(white), np.float32(1))
        if array.shape[1:] != shape or not (array.dtype == np.uint8 or array.dtype.kind == "f"):
            expected_shape = f"({', '.join(map(str, ('n', *shape)))})"
            raise ValueError(f"images must be {expected_shape}, uint8 or floats; got {array.dtype} {array.shape}")
        if array.dtype.kind == "f" and len(shape) == 3 and not ((array >= 0) & (array <= 1)).all():
            raise ValueError("images in floats must lie between 0 and 1")
        codes, log_variances = [], []
        for start in range(0, max(len(array), 1), BATCH):
            part = array[start : start + BATCH]
            batch = as_floats(as_tensor(part if part.dtype == np.uint8 else part.astype(np.float32, copy=False)))
            means, spreads = self._call(self.encoder(), batch)
            codes.append(means.float().cpu().numpy())
            if spreads is not None:
                log_variances.append(spreads.float().cpu().numpy())
        return np.concatenate(codes), np.concatenate(log_variances) if log_variances else None

    def prior_kl(self, means: ArrayLike, log_variances: ArrayLike) -> FloatArray | None:
        """KL divergences (n, n_codes) of posteriors from the model's prior, in nats.

        None if the prior is the standard normal. For codes whose joint prior is a mixture, the prior of each code is
        the mixture's marginal.

        Args:
            means, log_variances: (n, n_codes), of `posterior`.
        """
        settings = {**self.config["hyperparameters"], **self._settings}
        density = self._family.log_prior(self.modules, settings) if self._family.log_prior else None
        if density is None:
            return None
        pair = (torch.from_numpy(np.asarray(array, dtype=np.float32)) for array in (means, log_variances))
        return self._call(partial(kl_by_quadrature, log_density=density), *pair).cpu().numpy()

    def decode(self, codes: ArrayLike) -> FloatArray:
        """Mean images (n, height, width, channels), or rows of a table, of codes (n, n_codes); floats.

        Bernoulli decoders give values from 0 to 1; those of a Gaussian decoder are not clipped.

        Raises:
            ValueError: codes of another width than the model's.
        """
        array = as_array(codes)
        if array.ndim != 2 or array.shape[1] != self.n_codes or array.dtype.kind not in "fiu":
            raise ValueError(f"codes must be (n, {self.n_codes}) numbers; got {array.dtype} {array.shape}")
        images = []
        for start in range(0, max(len(array), 1), BATCH):
            batch = torch.from_numpy(np.ascontiguousarray(array[start : start + BATCH], dtype=np.float32))
            decoded = self._call(self.decoder(), batch)
            decoded = decoded.float().cpu()
            images.append((decoded.movedim(1, -1) if decoded.dim() == 4 else decoded).contiguous().numpy())
        return np.concatenate(images)

    def generate(self, n: int = 16, *, seed: int = 0) -> FloatArray:
        """Images decoded from n codes of the model's prior, `prior_codes`.

        Raises:
            ValueError: as `prior_codes`.
        """
        return self.decode(self.prior_codes(n, seed=seed))

    def prior_codes(self, n: int = 16, *, seed: int = 0) -> FloatArray:
        """Codes (n, n_codes) drawn from the model's prior.

        Standard normal, and uniform on circles, unless the family has another prior: a flow, the Gaussians of classes
        or values, the distribution of InfoGAN's codes.

        Args:
            n: number of codes.
            seed: of the draw; the first codes are the same for a larger n.

        Raises:
            ValueError: n below 1, or the family has no prior, such as PCA and Quessard's model.
        """
        check_draw(n, seed)
        family, settings, modules = self._family, {**self.config["hyperparameters"], **self._settings}, self.modules
        if not self.has_prior:
            raise ValueError(f"{self.path}: {family.title} has no prior that codes could be drawn from")

        def draw(normal: Tensor, uniform: Tensor) -> Tensor | None:
            if family.draw_prior is not None:
                return family.draw_prior(modules, settings, normal, uniform)
            return drawn_by_parts(self.parts, normal)

        return self._call(draw, *noise(n, self.n_codes, seed)).float().cpu().numpy()

    @property
    def has_prior(self) -> bool:
        """Whether codes can be drawn from a prior; families that are fitted, and points on spheres, have none."""
        drawn = self._family.fit is None and all(part.kind in ("gaussian", "circle") for part in self.parts)
        return drawn or self._family.draw_prior is not None

    def interpolate(self, one: ArrayLike, other: ArrayLike, *, steps: int = 8) -> FloatArray:
        """Images interpolated between two sets of images by their codes: (n, steps, height, width, channels).

        Codes are interpolated linearly, those on circles and spheres along the shorter arc at constant speed. Both ends
        are reconstructions.

        Args:
            one, other: images (n, height, width, channels), as for `encode`.
            steps: of each interpolation, both ends included.

        Raises:
            ValueError: as `encode`; or another number of images, or fewer than two steps.
        """
        check_whole("steps", steps, 2)
        low, high = self.encode(one), self.encode(other)
        if len(low) != len(high):
            raise ValueError(f"both ends must have the same number of images; got {len(low)} and {len(high)}")
        codes = between(self.parts, low, high, np.linspace(0, 1, steps))
        images = self.decode(codes.reshape(-1, self.n_codes))
        return images.reshape(len(low), steps, *images.shape[1:])

    def encoder(self) -> Callable[[Tensor], tuple[Tensor, Tensor | None]]:
        """The encoder as a function of tensors: images (n, channels, height, width), 0 .. 1, to a posterior."""
        modules, family, settings = self.modules, self._family, self._settings
        dtype = _dtype_of(modules)
        return lambda images: family.encode(modules, images.to(dtype), settings)

    def decoder(self) -> Callable[[Tensor], Tensor]:
        """The decoder as a function of tensors: codes (n, n_codes) to images (n, channels, height, width)."""
        modules, family, settings = self.modules, self._family, self._settings
        dtype = _dtype_of(modules)
        return lambda codes: family.decode(modules, codes.to(dtype), settings)

    def representation(
        self, dataset: Images | str | Path | None = None, n: int = N_CODES, *, seed: int = 0
    ) -> Representation:
        """Codes, log-variances and factors of images of a dataset, ready to be scored.

        Args:
            dataset: as for `dataset`; by default the one of the training, where that has a name.
            n: images drawn without replacement; all of them where there are fewer.
            seed: of the draw; models given the same get the same images in the same order.

        Raises:
            ValueError: n below 1; or as `dataset`.
        """
        check_draw(n, seed)
        return encoded(self._encoded, self.dataset(dataset), n, BATCH, seed)

    def objects(self, dataset: Images | str | Path | None = None, n: int = N_CODES, *, seed: int = 0) -> Representation:
        """`representation` of whole objects, each in every turn; turns are combinations of the cyclic factors.

        D_LSBD needs them: `unbraid.score(run.codes(), orbits=run.objects)`.

        Args:
            dataset: as for `representation`.
            n: about how many images; objects are drawn until they have as many, at least enough of them that each
                factor takes two levels.
            seed: of the draw.

        Raises:
            NotDefined: the dataset is no full grid of factors, or none of them is cyclic.
            ValueError: as `representation`.
        """
        check_draw(n, seed)
        return encoded_objects(self._encoded, self.dataset(dataset), n, BATCH, seed)

    def baselines(
        self, dataset: Images | str | Path | None = None, n: int = N_CODES, *, seed: int = 0
    ) -> dict[str, Baseline]:
        """Baselines of the images of `representation`, for `unbraid.score(run.codes(), baselines=...)`.

        A random projection of the pixels to as many codes as the model has, as many of their principal components, and
        the untrained model (except for families that are fitted, such as PCA).

        Args:
            dataset, n: as for `representation`.
            seed: of the draw of images, and of the projection.

        Raises:
            ValueError: as `representation`.
        """
        check_draw(n, seed)
        untrained = None if self._family.fit else self.untrained()._encoded
        return baselines_of(self.dataset(dataset), self.n_codes, n, BATCH, seed, untrained)

    def untrained(self) -> "Run":
        """The model with its initial weights.

        Raises:
            UntrustedCode: its network is a user's own, and was not trusted when the run was opened.
        """
        self.check_trust()
        fresh, shape = replace(self), tuple(self.config["dataset"]["image_shape"])
        with self.described(), torch.inference_mode(False), reproducible(torch.device("cpu")):
            modules = build_member(self._family, shape, self._settings, self.config["seed"]).eval()
        fresh.__dict__["modules"] = modules.requires_grad_(False).to(choose_device(self.device))
        return fresh

    def _encoded(self, images: Any) -> Any:
        codes, log_variances = self.posterior(images)
        if log_variances is None:
            return codes
        prior_kl = self.prior_kl(codes, log_variances)
        return (codes, log_variances) if prior_kl is None else (codes, log_variances, prior_kl)

    def dataset(self, dataset: Images | str | Path | None = None) -> FactorDataset:
        """The dataset given, or the one of the training.

        Args:
            dataset: a dataset, or its name or path. Images in an array, a tensor or a torch Dataset are those of a
                training that was given such; of others, make a dataset (`unbraid.datasets.from_array`).

        Raises:
            ValueError: none is given, and the one of the training has no name to open it by, or is a path that the user
                did not give; or the images are others than those of the training.
        """
        from unbraid.datasets import load
        from unbraid.datasets.digest import content_digest
        from unbraid.datasets.own_images import images_of

        source = self.config["dataset"]
        trained = " x ".join(map(str, source["image_shape"]))
        if isinstance(dataset, str | Path):
            opened = load(str(dataset))
            if list(opened.image_shape) != source["image_shape"]:
                shape = " x ".join(map(str, opened.image_shape))
                raise ValueError(
                    f"images of {str(dataset)!r} are {shape}, and {self.path} was trained on {trained} "
                    f"({source['name'] or 'in memory'}): leave the dataset out for those, or give one of this shape"
                )
            return opened
        if dataset is not None:
            opened = images_of(dataset)
            if opened is not dataset and content_digest(opened) != source["content"]:
                raise ValueError(
                    f"these images are not the {source['n_images']} of {trained} that {self.path} was trained on; of "
                    "others, give unbraid.datasets.from_array(images)"
                )
            return opened
        return load(**named_images(self))

    def codes(self) -> Representation:
        """The representation kept in the folder.

        Raises:
            ValueError: there is none, because the training diverged.
        """
        return read_codes(self.path, self.status)

    def curves(self) -> dict[str, FloatArray]:
        """`step` and, by name, the losses and their parts; each the mean over the steps since the point before.

        NaN where the optimizer step that reports it did not move.
        """
        return _read_table(self.path / CURVES)

    def snapshots(self) -> dict[str, FloatArray]:
        """`step` and, by name, metrics, `kl` in nats, how many latents were `informative`; {} where none were kept."""
        return self._read_optional(SNAPSHOTS)

    def held_out(self) -> dict[str, FloatArray]:
        """`step`, and in nats the mean `elbo`, `reconstruction` and `kl` of images that no training saw.

        {} where none were kept out. Which they are, `unbraid.training.held_out.held_out_rows` says.
        """
        return self._read_optional(HELD_OUT)

    def _read_optional(self, name: str) -> dict[str, FloatArray]:
        exists = name in self.status.get("files", {}) or (self.path / name).is_file()
        return _read_table(self.path / name) if exists else {}

    def _repr_html_(self) -> str:
        from unbraid.runs.run_text import described
        from unbraid.show.html import render

        shown = self.picture() if self.status["state"] == "finished" else None
        return render(
            "run_fragment.html", {"run": described(self.path.name, self.config, self.status), "picture": shown}
        )

    def picture(self) -> dict[str, Any] | None:
        """Latent traversals as a small picture, for pages; None if the model does not decode images.

        Only the run's folder is read.

        Raises:
            ValueError: a damaged folder, or a run that diverged.
        """
        from unbraid.runs.live.small_picture import picture

        if len(self.config["dataset"]["image_shape"]) != 3:
            return None
        return picture(self.codes(), self.parts, self.decode)

    @cached_property
    def modules(self) -> nn.ModuleDict:
        """The networks with their trained weights, in evaluation mode and frozen (`requires_grad` is False).

        Raises:
            ValueError: the weights are damaged, or are those of another architecture.
        """
        self.check_trust()
        with torch.inference_mode(False), reproducible(torch.device("cpu")):  # independent of the caller's settings
            modules = self._read_modules()
        return modules.to(choose_device(self.device))

    def _read_modules(self) -> nn.ModuleDict:
        path, shape = self.path / WEIGHTS, tuple(self.config["dataset"]["image_shape"])
        with self.described():
            weights = weights_of(self._family, shape, self._settings, self.config["seed"])
        expected = {name: tuple(value.shape) for name, value in weights.items()}
        try:
            check_file(path)
            weights = load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise damaged(path, error) from None
        if expected != {name: tuple(value.shape) for name, value in weights.items()}:
            raise ValueError(f"{path} does not fit the architecture in {CONFIG} of the same folder")
        with self.described():
            modules = self._built(weights)
        with self.described(), torch.inference_mode():
            dtype = _dtype_of(modules)
            images = torch.zeros(1, *(shape[2:] + shape[:2]), dtype=dtype)
            codes, _ = self._family.encode(modules, images, self._settings)
            if codes.shape != (1, self.n_codes):
                raise ValueError(f"{self.n_codes} codes of an image; the encoder gives {tuple(codes.shape)}")
            self._family.decode(modules, torch.zeros(1, self.n_codes, dtype=dtype), self._settings)
        if self.config.get("probe"):
            self._check_probe(modules)
        return modules

    def _built(self, weights: Mapping[str, Tensor]) -> nn.ModuleDict:
        shape = tuple(self.config["dataset"]["image_shape"])
        return filled_member(self._family, shape, self._settings, self.config["seed"], weights).requires_grad_(False)

    def with_weights(self, weights: Mapping[str, Tensor]) -> "Run":
        """The run, with its networks built from these weights instead of reading those in its folder."""
        modules, device = self._built(weights), choose_device(self.device)
        self.__dict__["modules"] = modules if device.type == "cpu" else modules.to(device)  # built there
        return self

    def on_cpu(self) -> "Run":
        """The run with its networks on the CPU; the run itself if they are there already."""
        if choose_device(self.device).type == "cpu":
            return self
        return replace(self, device="cpu").with_weights(
            {name: value.cpu() for name, value in self.modules.state_dict().items()}
        )

    def _check_probe(self, modules: nn.ModuleDict) -> None:
        """Raises ValueError if a user's own code does not give the same codes as when the run was trained."""
        with torch.inference_mode():
            probes = torch.from_numpy(probe_images(tuple(self.config["dataset"]["image_shape"])))
            images = as_floats(probes, _dtype_of(modules))
            codes = self._family.encode(modules, images, self._settings)[0].float().numpy()
        recorded = np.array(self.config["probe"], dtype=np.float32)
        if recorded.shape != codes.shape or np.abs(codes - recorded).max() > PROBED * (1 + np.abs(recorded).max()):
            own = trusted_in([self.config["family"], dict(self.config["hyperparameters"])])
            raise ValueError(
                f"{self.path}: {' and '.join(own)} {'is' if len(own) == 1 else 'are'} not the code that this run was "
                "trained with: the same images have other codes"
            )

    @contextmanager
    def described(self) -> Iterator[None]:
        """Wraps the construction of networks: errors become a ValueError on the config."""
        try:
            yield
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:
            reason = error_line(error)
            raise ValueError(f"{self.path / CONFIG} does not describe networks that can be used ({reason})") from error

    def check_trust(self) -> None:
        """Raises UntrustedCode if the network is a user's own, and was not trusted when the run was opened."""
        network = self.config["hyperparameters"].get("network", "")
        if is_code(network) and not isinstance(network, Trusted):
            raise UntrustedCode(
                f"{self.path / CONFIG} names a network of its own, {network!r}, and opening the run would execute it",
                network,
                f"load_run(path, network={network!r})",
            )

    @property
    def parts(self) -> tuple[Part, ...]:
        """The kinds of codes, in order: Gaussian latents, circles of two codes each, ..."""
        return code_parts(self._family, self._settings)

    @property
    def n_codes(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def _family(self) -> Family:
        return find_family(self.config["family"])

    @property
    def _settings(self) -> Mapping[str, Any]:
        member = Member(self.config["seed"], completed(self._family, self.config["hyperparameters"]))
        return {**structural_settings(self._family, [member]), **self.config.get("facts", {})}

    def _call(self, function: Any, *batch: Tensor) -> Any:
        device, dtype = choose_device(self.device), _dtype_of(self.modules)
        with torch.inference_mode(), reproducible(device):
            return function(*(tensor.to(device, dtype) for tensor in batch))


def check_draw(n: int, seed: int) -> None:
    """Raises ValueError if `n` is below 1 or `seed` below 0, or they are not whole numbers."""
    check_whole("n", n, 1)
    check_whole("seed", seed, 0)


def _dtype_of(modules: nn.Module) -> torch.dtype:
    """The dtype of the weights, and so of the networks' inputs: float64 if they were trained in it."""
    return next((tensor.dtype for tensor in modules.parameters() if tensor.is_floating_point()), torch.float32)


def named_images(run: Run) -> dict[str, Any]:
    """Name and options of the images of a training.

    Raises:
        ValueError: they have no name, or it is a path that the user did not give, and no folder of `unbraid fit` around
            the run has them.
        FileNotFoundError: there is nothing at the path, as where it is relative and this is another folder.
    """
    from unbraid.datasets import DATASETS
    from unbraid.datasets.recorded import check_recorded, of_everywhere

    source = run.config["dataset"]
    name = source["name"]
    if name is None:
        raise ValueError(f"{run.path} was trained on a dataset in memory, which no folder holds; give its images")
    images = fitted_images(run.path, name)
    if images is None:
        check_recorded(name, run.path / CONFIG, f"give the dataset, or load_run(path, trust=[{name!r}])")
        path = with_home(name)
        if name not in DATASETS and not path.is_absolute() and not path.exists():
            raise FileNotFoundError(
                f"{name}: no such file, folder or dataset here; a relative path of images begins where the training "
                "was started: go there, or give the images in Python"
            )
    return {"name": name if images is None else str(images), **of_everywhere(source["options"])}


def _read_table(path: Path) -> dict[str, FloatArray]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        check_file(path)
        table = pq.ParquetFile(path.absolute()).read()  # pyarrow would take a relative folder such as runs:1 for a URI
    except (pa.ArrowException, OSError, ValueError) as error:
        raise damaged(path, error) from None
    return {name: table[name].to_numpy() for name in table.column_names}


def load_run(
    path: str | Path, *, device: str = "auto", network: str | PairBuilder | None = None, trust: Collection[str] = ()
) -> Run:
    """Open the folder of a finished run.

    A run that was trained with a user's own network (`network="my_lab.nets:pair"`) is opened only if the function is
    named here as well: code is never executed only because a folder names it.

    Args:
        path: the folder that `unbraid.train` or `unbraid train` made.
        device: where to encode and decode.
        network: your own network that the run was trained with: the function, or its name as `train` was given it.
        trust: names of your own networks and families, any of which the run may have, and paths of your own images.

    Raises:
        FileNotFoundError: there is no such folder, or it is not that of a run.
        ValueError: the training has not finished; a file is damaged, or holds what no run holds; it was written by
            another version; or it names a network that was not named here.
    """
    run = open_run(path, device=device, trust=(*trust, *_name_of(network, path)))
    assert isinstance(run.modules, nn.ModuleDict)  # read now, so that damage shows here and not at first use
    return run


def open_run(
    path: str | Path, *, device: str = "auto", trust: Collection[str] = (), records: Records | None = None
) -> Run:
    """`load_run`, but networks and weights are loaded when they are first used.

    Args:
        path, device, trust: as for `load_run`.
        records: its config and status, if they were read already.
    """
    path = Path(path)
    config, status = records or read_folder(path)
    config = trusting(config, trust)
    check_family(config, path / CONFIG)
    try:
        with safe_open(path / WEIGHTS, "pt"):
            pass
    except (SafetensorError, OSError) as error:
        raise damaged(path / WEIGHTS, error) from None
    run = Run(path, config, status, device)
    with run.described():
        if run.n_codes < 1:
            raise ValueError("no codes")
    return run


def _name_of(network: str | PairBuilder | None, path: str | Path) -> list[str]:
    """The name of a run's network, after checking that it is the one given; empty if none is given."""
    if network is None:
        return []
    named = read_folder(Path(path))[0]["hyperparameters"].get("network")
    same = network == named if isinstance(network, str) else isinstance(named, str) and is_called(network, named)
    if not same:
        raise ValueError(f"{Path(path) / CONFIG} names the network {named!r}, which is not {network!r}")
    return [named]


def check_family(config: Mapping[str, Any], path: Path) -> None:
    """Raises ValueError if this version does not have the run's family, or one of its hyperparameters."""
    name = config["family"]
    if name not in FAMILIES and not is_code(name):
        raise ValueError(f"{path}: this version of unbraid has no family {name!r}")
    if is_code(name) and not isinstance(name, Trusted):
        settings = (name, config["hyperparameters"].get("network"))
        names = [text for text in settings if is_code(str(text)) and not isinstance(text, Trusted)]
        raise UntrustedCode(
            f"{path} names code of its own, {' and '.join(map(repr, names))}, and opening the run would execute it",
            names,
            f"load_run(path, trust={names!r})",
        )
    family = find_family(name)
    if differing := sorted(completed(family, config["hyperparameters"]).keys() ^ family.hyperparameters.keys()):
        raise ValueError(
            f"{path}: written by another version of unbraid; {config['family']} differs in {', '.join(differing)}"
        )
    for name, value in config["hyperparameters"].items():
        try:
            check_value(name, family.hyperparameters[name], value)
        except ValueError as error:
            raise ValueError(f"{path}: hyperparameters.{error}") from None
