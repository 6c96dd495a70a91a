"""Run folders: what is in them, that they can be used again, and that nothing damaged is taken for whole."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from torch import nn

import unbraid
from tests.processes import forked, holder_elsewhere
from tests.training.training_examples import SPACE, TINY, blocks, member
from unbraid import load_run, train
from unbraid.data.image_dataset import ArrayDataset
from unbraid.families.family_table import FAMILIES
from unbraid.files.checksum import without_checksum
from unbraid.files.run_files import CODES, CONFIG, STATUS, WEIGHTS
from unbraid.runs.run import Run
from unbraid.runs.run_traversals import traverse
from unbraid.training import writing
from unbraid.training.train import LOCK, TrainingProgress, weight_bytes

SMALL = {"batch_size": 8, "network": "dense", "latents": 3, "processes": 0, "precision": "float32"}
FILES = [
    "checkpoint.safetensors",
    "codes.safetensors",
    "config.json",
    "curves.parquet",
    "status.json",
    "weights.safetensors",
]

LATER = {
    "initialisation",
    "schedule",
    "optimizer",
    "augment",
    "rate_warmup",
    "beta_warmup",
    "clip",
    "reconstruction_weight",
}  # not in a config at its default


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    out = tmp_path_factory.mktemp("runs")
    return train("beta_vae", blocks(), beta=[1, 8.0], seeds=[0, 5], learning_rate=1e-3, steps=30, out=out, **SMALL)


def test_every_combination_has_a_folder_of_plain_files(runs):
    assert [(run.config["hyperparameters"]["beta"], run.config["seed"]) for run in runs] == [
        (1.0, 0), (1.0, 5), (8.0, 0), (8.0, 5),
    ]  # fmt: skip
    for run in runs:
        assert sorted(each.name for each in run.path.iterdir()) == FILES
        assert run.config["hyperparameters"].keys() == FAMILIES["beta_vae"].hyperparameters.keys() - LATER
        assert run.status["state"] == "finished"
        assert run.status["step"] == 30
        curves = run.curves()
        assert curves["step"].tolist() == list(range(1, 31))
        assert curves["loss/vae"][-5:].mean() < curves["loss/vae"][:5].mean()
        assert run.status["last"]["kl"] == curves["kl"][-1]
        beta = run.config["hyperparameters"]["beta"]
        np.testing.assert_allclose(curves["loss/vae"], curves["reconstruction"] + beta * curves["kl"], rtol=1e-5)
    assert len({run.path for run in runs}) == 4


def test_a_loaded_run_encodes_and_decodes_as_its_layers_do(runs):
    run = load_run(runs[0].path)
    weights = load_file(run.path / WEIGHTS)
    pixels = blocks().images(np.arange(40))
    hidden = pixels.reshape(40, -1) / 255
    for layer in (1, 3, 5):
        weight, bias = (weights[f"vae.encoder.{layer}.{part}"] for part in ("weight", "bias"))
        hidden = hidden @ weight.T + bias
        hidden = np.maximum(hidden, 0) if layer < 5 else hidden
    np.testing.assert_allclose(run.encode(pixels), hidden[:, :3], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run.posterior(pixels)[1], hidden[:, 3:], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(run.encode(pixels / 255), run.encode(pixels), rtol=1e-5, atol=1e-6)

    hidden = np.array([[0.5, -1.0, 2.0]])
    for layer in (0, 2, 4):
        weight, bias = (weights[f"vae.decoder.{layer}.{part}"] for part in ("weight", "bias"))
        hidden = hidden @ weight.T + bias
        hidden = np.maximum(hidden, 0) if layer < 4 else hidden
    images = run.decode([[0.5, -1.0, 2.0]])
    assert images.shape == (1, 32, 32, 1)
    np.testing.assert_allclose(images.reshape(1, -1), 1 / (1 + np.exp(-hidden)), rtol=1e-4, atol=1e-5)
    assert run.encode(pixels[:0]).shape == (0, 3)


def test_an_encoder_can_be_differentiated(runs):
    run = load_run(runs[0].path, device="cpu")
    images = torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    step = torch.randn(images.shape, generator=torch.Generator().manual_seed(1)) * 1e-2
    encode = run.encoder()
    encode(images)[0].sum().backward()
    with torch.no_grad():
        moved = (encode(images + step)[0] - encode(images - step)[0]).sum() / 2
    assert images.grad is not None
    torch.testing.assert_close((images.grad * step).sum(), moved, rtol=0.02, atol=1e-4)


def test_a_program_that_casts_by_itself_changes_no_training_in_bfloat16(tmp_path):
    """Torch keeps cast weights until the outermost autocast ends; each step has other weights."""
    settings = {**SMALL, "precision": "bfloat16", "learning_rate": 1e-2, "steps": 6}
    (alone,) = train("vae", TINY, out=tmp_path / "alone", **settings)
    with torch.autocast("cpu", torch.bfloat16):
        (within,) = train("vae", TINY, out=tmp_path / "within", **settings)
    assert (within.path / WEIGHTS).read_bytes() == (alone.path / WEIGHTS).read_bytes()
    (half,) = train("vae", TINY, out=tmp_path, **{**settings, "steps": 3})
    longer = unbraid.continue_run(half, 6, dataset=TINY, processes=0)
    assert (longer.path / WEIGHTS).read_bytes() == (alone.path / WEIGHTS).read_bytes()


@contextmanager
def default_of(get: Callable[[], object], set_to: Callable[[Any], None], value: object) -> Iterator[None]:
    before = get()
    set_to(value)
    try:
        yield
    finally:
        set_to(before)


SURROUNDINGS = {
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "double precision": lambda: default_of(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "another device": lambda: default_of(lambda: None, torch.set_default_device, "meta"),
}


def _asked(run: Run, images: Any, codes: Any) -> list[Any]:
    return [each for one in (run, run.untrained()) for each in (one.encode(images), one.decode(codes))]


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_what_a_program_has_set_in_torch_changes_no_run(runs, tmp_path, name):
    """A notebook that has turned gradients off, or set a device or precision for all its tensors."""
    images, codes = blocks().images(np.arange(20)), [[0.5, -1.0, 2.0]]
    wanted = _asked(runs[0], images, codes)
    with SURROUNDINGS[name]():
        (again,) = train("beta_vae", blocks(), beta=1, learning_rate=1e-3, steps=30, out=tmp_path, **SMALL)
        other = {**SMALL, "network": "unbraid.families.networks:dense_pair"}
        train("vae", TINY, steps=1, out=tmp_path, **other)
        run = load_run(again.path)
        found = _asked(run, images, codes)
    assert again.path.name == runs[0].path.name
    assert (again.path / WEIGHTS).read_bytes() == (runs[0].path / WEIGHTS).read_bytes()
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    pixels = torch.rand(2, 1, 32, 32, generator=torch.Generator().manual_seed(0)).requires_grad_()
    run.encoder()(pixels)[0].sum().backward()  # as the run that is opened elsewhere
    assert pixels.grad is not None
    assert not any(each.requires_grad for one in (run, run.untrained()) for each in one.modules.parameters())


def test_a_run_on_another_device_has_the_same_networks_on_the_cpu(runs, monkeypatch):
    run = load_run(runs[0].path, device="cpu")
    assert run.on_cpu() is run
    elsewhere = replace(run, device="cuda")
    elsewhere.__dict__["modules"] = run.modules
    monkeypatch.setattr("unbraid.runs.run.choose_device", torch.device)
    moved = elsewhere.on_cpu()
    assert moved.device == "cpu"
    assert moved.modules is not run.modules
    images = blocks().images(np.arange(3))
    np.testing.assert_array_equal(moved.encode(images), run.encode(images))


def test_the_kept_codes_are_those_of_the_dataset(runs):
    kept = runs[1].codes()
    index = np.arange(len(SPACE))
    assert np.array_equal(kept.factors, SPACE.factors(index))
    assert kept.names == SPACE.names
    assert kept.sizes == SPACE.sizes
    assert np.array_equal(kept.codes, runs[1].encode(blocks().images(index)))
    few = [run.representation(blocks(), 20, seed=3) for run in runs[:2]]
    assert len(few[0]) == 20
    assert np.array_equal(few[0].factors, few[1].factors)
    assert not np.array_equal(few[0].factors, runs[0].representation(blocks(), 20, seed=4).factors)


def test_one_of_a_population_equals_itself_alone_and_finished_runs_are_left_alone(runs, tmp_path):
    (alone,) = train("beta_vae", blocks(), beta=8, seeds=[5], learning_rate=1e-3, steps=30, out=tmp_path, **SMALL)
    assert alone.path.name == runs[3].path.name
    assert (alone.path / WEIGHTS).read_bytes() == (runs[3].path / WEIGHTS).read_bytes()
    assert (alone.path / CODES).read_bytes() == (runs[3].path / CODES).read_bytes()

    for name in ("notes.txt", "checkpoint.safetensors", ".weights.safetensors.x1.part"):
        (alone.path / name).write_text("left here")
    before = (alone.path / STATUS).stat().st_mtime_ns
    sent: list[TrainingProgress] = []
    settings = {"learning_rate": 1e-3, "steps": 30, "out": tmp_path, "progress": sent.append, **SMALL}
    again = train("beta_vae", blocks(), beta=[8, 8.0, 1], seeds=[5], **settings)
    assert [run.path.name for run in again] == [runs[3].path.name, runs[1].path.name]
    assert (alone.path / STATUS).stat().st_mtime_ns == before
    assert sorted(each.name for each in alone.path.iterdir()) == sorted([*FILES, "notes.txt"])
    assert sent[0].n_done == 1
    assert sent[-1].n_done == 2


def test_runs_that_are_all_finished_need_a_folder_that_can_be_read_alone(tmp_path, monkeypatch):
    settings = {"seeds": 2, "steps": 2, "out": tmp_path, **SMALL}
    runs = train("vae", TINY, **settings)

    @contextmanager
    def refused(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))
        yield

    monkeypatch.setattr("unbraid.training.train.locked", refused)
    told: list[TrainingProgress] = []
    assert [run.path for run in train("vae", TINY, progress=told.append, **settings)] == [run.path for run in runs]
    assert (told[-1].n_done, told[-1].n_runs) == (2, 2)
    with pytest.raises(PermissionError):
        train("vae", TINY, **{**settings, "seeds": 3})


def test_the_id_follows_the_images_and_settings(runs, tmp_path):
    settings = {"beta": 1, "seeds": [0], "learning_rate": 1e-3, "out": tmp_path, **SMALL}
    array = blocks().array.copy()
    array[0, 0, 0] = 255
    others = [
        train("beta_vae", ArrayDataset(array, SPACE), steps=30, **settings),
        train("beta_vae", blocks(), steps=29, **settings),
        train("beta_vae", blocks(), steps=30, **{**settings, "batch_size": 9}),
    ]
    names = {run.path.name for each in others for run in each}
    assert len(names) == 3
    assert not names & {run.path.name for run in runs}


def test_corrected_images_are_not_answered_with_the_old_model(tmp_path):
    """Images of a file of the user's, all but 1 024 evenly spaced ones of which are inverted in place."""
    pixels = np.random.default_rng(0).integers(0, 256, size=(4096, 4, 4), dtype=np.uint8)
    np.save(tmp_path / "images.npy", pixels)
    (tmp_path / "factors.csv").write_text("\n".join(["a", *map(str, range(4096))]))
    settings = {"latents": 2, "steps": 1, "out": tmp_path / "runs", "processes": 0, "fit_images": 4096}
    (first,) = train("pca", str(tmp_path), **settings)
    assert train("pca", str(tmp_path), **settings)[0].path == first.path
    others = np.setdiff1d(np.arange(4096), np.linspace(0, 4095, 1024).astype(int))
    mapped = np.load(tmp_path / "images.npy", mmap_mode="r+")
    mapped[others] = 255 - mapped[others]
    mapped.flush()
    (second,) = train("pca", str(tmp_path), **settings)
    assert second.path != first.path
    assert (second.path / WEIGHTS).read_bytes() != (first.path / WEIGHTS).read_bytes()


@pytest.mark.slow
def test_killed_in_the_middle_it_continues_to_the_same_weights(tmp_path):
    """Killed outright, its last checkpoint a few steps old, then run again."""
    script = f"""
import sys, time, unbraid.training.train as api, unbraid.training.loop as loop
from tests.training.training_examples import blocks
loop.REPORT_SECONDS = 0.0
def slow(sent):
    if max(sent.steps_taken.values(), default=0) >= 15:
        print(max(sent.steps_taken.values()), flush=True)
        time.sleep(60)
api.train("vae", blocks(), seeds=2, steps=40, out=sys.argv[1], progress=slow, checkpoint_every=0, **{SMALL!r})
"""
    killed = tmp_path / "killed"
    with forked(script, str(killed)) as process:
        assert 15 <= int(process.stdout.readline()) < 40
    left = [each for each in killed.iterdir() if each.is_dir()]
    assert any(each.suffix == ".part" and (each / "checkpoint.safetensors").exists() for each in left)
    assert not [each for each in left if each.suffix != ".part" and not (each / STATUS).exists()]
    unfinished = next(each for each in left if each.suffix == ".part")
    for path in (unfinished, unfinished.with_suffix("")):
        with pytest.raises(ValueError, match="has not finished; the same command continues it"):
            load_run(path)

    first = train("vae", blocks(), seeds=2, steps=40, out=killed, **SMALL)
    second = train("vae", blocks(), seeds=2, steps=40, out=tmp_path / "whole", **SMALL)
    for one, other in zip(first, second, strict=True):
        assert sorted(each.name for each in one.path.iterdir()) == FILES
        for name in (WEIGHTS, CODES, CONFIG):
            assert (one.path / name).read_bytes() == (other.path / name).read_bytes()
        assert all(np.array_equal(one.curves()[name], values) for name, values in other.curves().items())


def test_a_diverged_run_is_kept_with_its_reason_and_without_codes(tmp_path):
    runs = train("vae", blocks(), learning_rate=[1e-3, 0.9], steps=60, out=tmp_path, **SMALL)
    assert [run.status["state"] for run in runs] == ["finished", "diverged"]
    status = load_run(runs[1].path).status
    assert "not finite" in status["reason"]
    assert status["step"] < 60
    with pytest.raises(ValueError, match=r"diverged at step \d+ .*: it has no codes"):
        runs[1].codes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"family": "beta_vea"}, "unknown family 'beta_vea'; did you mean 'beta_vae'?"),
        ({"betta": 3}, "beta_vae has no hyperparameter 'betta'; did you mean 'beta'?"),
        ({"beta": -0.1}, "beta must lie between 0 and 1e+06; got -0.1"),
        ({"beta": "4"}, "beta must be a number; got '4'"),
        ({"beta": float("inf")}, "beta must be a number; got inf"),
        ({"beta": []}, "beta has no values"),
        ({"latents": 2.5}, "latents must be a whole number; got 2.5"),
        ({"network": "math:pair"}, "network 'math:pair' cannot be imported: module 'math' has no attribute 'pair'"),
        ({"preset": "udr", "beta": 2}, "beta is set by preset 'udr' already"),
        ({"seeds": [1, -1]}, "a seed must be a whole number, 0 or more; got -1"),
        ({"steps": 0}, "steps must be a whole number, 1 or more; got 0"),
        ({"device": "cpuu"}, "device 'cpuu' cannot be used here"),
        ({"dataset": {"name": "square", "sidee": 3}}, "dataset 'square' has no option 'sidee'"),
        ({"dataset": blocks(12)}, "sides from 16 to 256"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_any_folder_is_made(tmp_path, arguments, message):
    given = {"family": "beta_vae", "dataset": blocks(), "steps": 5, "out": tmp_path / "runs", **arguments}
    with pytest.raises(ValueError, match="(?s).*") as caught:
        train(given.pop("family"), given.pop("dataset"), **given)
    assert message in str(caught.value)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("family", ["vae", "delta_vae", "pca"])
def test_what_is_trained_in_float64_is_used_in_it(tmp_path, family):
    taken = [name for name in SMALL if name in FAMILIES[family].hyperparameters or name not in ("network", "latents")]
    settings = {name: SMALL[name] for name in taken} | {"precision": "float64"}
    (made,) = train(family, blocks(), steps=2, out=tmp_path, **settings)
    run, images = load_run(made.path), blocks().images(np.arange(3))
    codes = run.encode(images)
    np.testing.assert_array_equal(codes, made.encode(images))
    assert codes.dtype == np.float32
    assert run.decode(codes).shape == images.shape
    of_float32 = torch.zeros(1, images.shape[3], *images.shape[1:3])
    with torch.no_grad():
        assert run.encoder()(of_float32)[0].shape == codes[:1].shape
    if run.has_prior:
        assert run.generate(2).shape == images[:2].shape


def test_presets_become_runs(tmp_path):
    runs = train("beta_vae", blocks(), preset="udr", steps=1, out=tmp_path, **SMALL)
    assert [run.config["hyperparameters"]["beta"] for run in runs] == [1, 2, 4, 6, 8, 16]


def _twice_as_long(encoder: nn.Linear) -> None:
    with torch.no_grad():
        encoder.weight *= 2 / encoder.weight.norm().item()


LOOKS = {
    "item": _twice_as_long,
    "list": lambda encoder: encoder.weight.tolist(),
    "numpy": lambda encoder: encoder.weight.detach().numpy(),
    "parametrised": nn.utils.parametrizations.orthogonal,
}


@pytest.mark.parametrize("look", LOOKS)
def test_networks_that_look_at_values_while_they_are_built_are_weighed(look):
    """25 + 6 weights and 5 + 3 biases of 4 bytes; one made orthogonal keeps a matrix of its size beside it."""

    def build(*_: object) -> nn.ModuleDict:
        encoder = nn.Linear(5, 5)
        LOOKS[look](encoder)
        return nn.ModuleDict({"encoder": encoder, "decoder": nn.Linear(2, 3)})

    plain = sum(each.nbytes for each in build().state_dict().values())
    assert plain == 4 * (25 + 5 + 6 + 3) + (4 * 25 if look == "parametrised" else 0)
    assert weight_bytes(replace(FAMILIES["vae"], build=build), blocks(), member("vae")) == plain


def test_a_full_disk_is_seen_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr("unbraid.training.train.shutil.disk_usage", lambda _: Full)
    with pytest.raises(OSError, match="1 run needs about .* MB of disk, 1 MB are free"):
        train("vae", blocks(), steps=1, out=tmp_path, **SMALL)
    assert [each.name for each in tmp_path.iterdir()] == []


class Full:
    free = 1_000_000


@pytest.mark.lengthy
def test_two_processes_do_not_train_the_same_run(tmp_path):
    script = f"""
import sys, time
from tests.training.training_examples import blocks
from unbraid import train
def slow(sent):
    print("at work", flush=True)
    time.sleep(60)
train("vae", blocks(), steps=5, out=sys.argv[1], progress=slow, **{SMALL!r})
"""
    with forked(script, str(tmp_path)) as process:
        assert process.stdout.readline() == "at work\n"
        with pytest.raises(ValueError, match="another process is training this run"):
            train("vae", blocks(), steps=5, out=tmp_path, **SMALL)
        (other,) = train("vae", blocks(), seeds=[1], steps=5, out=tmp_path, **SMALL)
    assert other.status["state"] == "finished"
    (freed,) = train("vae", blocks(), steps=5, out=tmp_path, **SMALL)
    assert freed.status["state"] == "finished"


def test_two_threads_train_each_run_once(tmp_path, monkeypatch):
    written, both = [], threading.Barrier(2)

    def write_run(working, target, *arguments, **options):
        written.append(target.name)
        return writing.write_run(working, target, *arguments, **options)

    def trained(seeds):
        both.wait(30)
        return train("vae", TINY, seeds=seeds, steps=3, out=tmp_path, **SMALL)

    monkeypatch.setattr("unbraid.training.train.write_run", write_run)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(trained, ([0, 1], [1, 2]))
    assert first[1].path == second[0].path
    assert sorted(written) == sorted({run.path.name for run in first + second})
    assert len(written) == 3


def test_a_thread_that_ends_leaves_the_runs_of_others_alone(tmp_path):
    ended = threading.Event()

    def told(_):
        ended.wait(60)

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(train, "vae", TINY, steps=3, out=tmp_path, progress=told, **SMALL)
        while not (begun := list(tmp_path.glob("*.part"))):
            time.sleep(0.01)
        train("vae", TINY, seeds=[1], steps=3, out=tmp_path, **SMALL)
        assert holder_elsewhere(tmp_path / f".{begun[0].stem}{LOCK}") == "another process"
        ended.set()
        assert slow.result()[0].status["state"] == "finished"


def copied(run: Run, folder: Path) -> Path:
    for each in run.path.iterdir():
        (folder / each.name).write_bytes(each.read_bytes())
    return folder


def change_config(folder: Path, **changes: object) -> None:
    """By a hand that means it, and takes the checksum out."""
    config = without_checksum(json.loads((folder / CONFIG).read_text()))
    (folder / CONFIG).write_text(json.dumps(config | changes))


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG, STATUS])
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.98])
def test_a_truncated_file_is_one_clear_line(runs, tmp_path, name, kept):
    folder = copied(runs[0], tmp_path)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(kept * len(content))])
    with pytest.raises(ValueError, match=f"{name} is damaged .*delete the folder and train again"):
        load_run(folder)


def test_runs_of_other_versions_and_architectures_are_refused(runs, tmp_path):
    folder = copied(runs[0], tmp_path)
    change_config(folder, format=2)
    with pytest.raises(ValueError, match="its format is 2; this version of unbraid reads 1"):
        load_run(folder)
    change_config(folder, format=1, family="gamma_vae")
    with pytest.raises(ValueError, match="no family 'gamma_vae'"):
        load_run(folder)
    change_config(folder, family="vae")
    with pytest.raises(ValueError, match="vae differs in beta"):
        load_run(folder)
    hyperparameters = runs[0].config["hyperparameters"]
    change_config(folder, family="beta_vae", hyperparameters={**hyperparameters, "latents": 4})
    with pytest.raises(ValueError, match="weights.safetensors does not fit the architecture in config.json"):
        load_run(folder)
    change_config(folder, hyperparameters=hyperparameters)
    weights = load_file(folder / WEIGHTS)
    weights.pop("vae.encoder.1.bias")
    save_file(weights, folder / WEIGHTS)
    with pytest.raises(ValueError, match="does not fit the architecture"):
        load_run(folder)
    with pytest.raises(FileNotFoundError, match="not the folder of a run; there is no config.json"):
        load_run(tmp_path.parent)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        load_run(tmp_path / "absent")


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 64, 64, 1), np.uint8), r"must be \(n, 32, 32, 1\), uint8 or floats; got uint8 \(2, 64, 64, 1\)"),
        (np.zeros((32, 32, 1), np.uint8), r"got uint8 \(32, 32, 1\)"),
        (np.zeros((2, 32, 32, 1), np.int64), "got int64"),
        (np.full((2, 32, 32, 1), 255.0), "must lie between 0 and 1"),
        (np.full((2, 32, 32, 1), np.nan), "must lie between 0 and 1"),
    ],
)
def test_images_of_another_shape_or_type_are_refused(runs, images, message):
    with pytest.raises(ValueError, match=message):
        runs[0].encode(images)
    with pytest.raises(ValueError, match=r"codes must be \(n, 3\) numbers"):
        runs[0].decode(np.zeros((2, 4)))


def test_traversals_move_one_code_between_quantiles(runs):
    run = runs[0]
    found = traverse(run, blocks(), rows=2, steps=5, shown=4, seed=1)
    codes, kl = run.codes().codes, run.codes().mean_kl()
    assert found.codes.tolist() == np.argsort(-kl).tolist()
    told = run.codes()
    signal = 0.5 * np.log1p(told.codes.astype(float).var(0) / np.exp(told.log_variances.astype(float)).mean(0))
    assert found.informative is not None
    assert np.array_equal(found.informative, signal[found.codes] > 0.01)
    assert found.images.shape == (3, 2, 5, 32, 32, 1)
    assert found.originals.shape == found.reconstructions.shape == (4, 32, 32, 1)
    first = found.codes[0]
    np.testing.assert_allclose(found.values[0][[0, -1]], np.quantile(codes[:, first], [0.02, 0.98]), rtol=1e-5)
    at = run.encode((found.originals * 255).round().astype(np.uint8))[1]
    at[first] = found.values[0, 3]
    np.testing.assert_allclose(found.images[0, 1, 3], run.decode(at[None])[0], rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="trained on a dataset in memory"):
        traverse(run)
    for given, message in (
        ({"rows": 0}, "rows must be a whole number, 1 to 243; got 0"),
        ({"rows": 1.5}, "rows must be a whole number, 1 to 243; got 1.5"),
        ({"steps": 1}, "steps must be a whole number, 2 or more; got 1"),
        ({"n": 0}, "n must be a whole number, 1 or more; got 0"),
        ({"seed": -1}, "seed must be a whole number, 0 or more; got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            traverse(run, blocks(), **given)


def test_the_same_pixels_have_the_same_codes_however_they_lie_in_memory(runs):
    pixels = blocks().images(np.arange(5))
    floats = (pixels / 255).astype(np.float32)
    expected = runs[0].encode(floats)
    lying = (
        floats.astype(">f4"), floats.astype(np.longdouble), np.asfortranarray(floats), floats[::-1].copy()[::-1],
        torch.from_numpy(floats).requires_grad_(),
    )  # fmt: skip
    for given in lying:
        assert np.array_equal(runs[0].encode(given), expected)
    codes = torch.from_numpy(expected).requires_grad_()
    assert np.array_equal(runs[0].decode(codes), runs[0].decode(expected.astype(">f4")))
    with pytest.raises(ValueError, match="1 masked entries"):
        runs[0].encode(np.ma.array(floats, mask=np.arange(floats.size).reshape(floats.shape) == 7))


def test_no_hyperparameter_has_the_name_of_an_argument():
    arguments = set(train.__annotations__)
    assert not [(name, each) for name, row in FAMILIES.items() for each in row.hyperparameters if each in arguments]


def test_unbraid_offers_training_without_importing_torch():
    code = "import sys, unbraid; print('torch' in sys.modules, {'train', 'load_run', 'Run'} <= set(dir(unbraid)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
    assert unbraid.train is train
    assert unbraid.Run is Run
