"""Model families: the table of those that can be trained, and how to add one.

A family is one row of FAMILIES: how to build its modules, the optimizer steps that train them, its hyperparameters,
and how to encode and decode. The rows only describe; `unbraid.train` owns random numbers, optimisers, order and files,
and runs one member or a stacked population from the same row.

A family of a user's own needs no row: it is named as "module:object", a `Family` or a loss.

**To add one to the table** write one file: its objective (a pure function), what is special of its networks, one loss
per optimizer step (a function as below) and its row; and one line in `family_table.py`. CONTRIBUTING.md has the steps.

`build(shape, settings) -> nn.ModuleDict`
    All modules of one member by name. `shape` is (height, width, channels), or (n_features,) for tables; `settings`
    holds the structural hyperparameters. The trainer seeds torch's generator before the call, so plain constructors
    are deterministic. Modules stay in training mode during training; buffers (running statistics of a batch norm)
    are part of a member's state, are updated by the forward pass of any optimizer step that uses the module, and are
    saved.

`OptimizerStep(name, trains, loss, draws, adam, repeats)`
    Within a step the optimizer steps move in the order given, each `repeats` times in a row, each time on fresh draws:
    the loss is computed, differentiated with respect to the parameters of the modules named in `trains` only, and
    these take one step of Adam. An optimizer step's Adam is its own (learning rate, betas, moments); two may train the
    same modules. `factor_vae.py` has two players, `info_gan.py` one that repeats, `pca.py` none: its `fit(modules,
    images, context)` sets the weights in place, once, where `images(positions)` gives float images of any positions 0
    .. n_images - 1.
    `turn(step, context)` is for optimizer steps that do not move at every step: how often it has moved before, or None
    where it waits. Its epochs through images and items and its Adam count turns, not steps; `lsbd_vae.py` takes turns,
    `weak_de.py` begins one after a warm-up. Curves hold the mean over the steps in which an optimizer step moved, NaN
    where there was none: give logs of optimizer steps that move at different steps different names.

`loss(modules, batch, hyper, step, context) -> (loss, logs, kept)`
    - `modules`: the member's nn.ModuleDict; call modules as usual, `modules["vae"](images, noise)`. Inside a stack
      their tensors are replaced under torch.func.vmap, so no `.item()`, no Python branch on a tensor's value, no
      random calls, no writing into inputs. For derivatives inside a loss (a gradient penalty) use torch.func.grad
      of a function of the *inputs*; parameters may be closed over.
    - `batch`: the optimizer step's draws by name, plus what earlier optimizer steps of the same step kept. A draw is
      fixed by (member's seed, step, its name, the repeat): optimizer steps that name the same draw get the same
      tensors in the same repeat, so "images" of the second optimizer step are those of the first, and another name is
      another, independent batch.
    - `hyper`: every hyperparameter by name. Structural ones are plain Python values; the others are floats, or 0-d
      tensors inside a stack, so use torch functions on them (`torch.as_tensor(x)`), never `if hyper["gamma"] > 0`.
    - `step`: how many steps came before; int, or a 0-d int tensor.
    - `context`: n_images, batch_size, steps, settings, and `passes`: moves that show all items once, by name.
    - returns the scalar to minimise, nats per image; `logs`, scalars by name for the curves; and `kept`, tensors
      that later optimizer steps of the step find in their batch, detached (FactorVAE's sample, so that the
      discriminator need not encode again). `{}` where there are none. A later repeat of the same optimizer step sees
      them, too.

    The forward pass may run under bfloat16 autocast: modules return promoted values
    (`unbraid.families.networks.promote`), and sums, logarithms and exponentials are taken in single precision
    or better.

`encode(modules, images, settings) -> (codes, log_variances | None)` and `decode(modules, codes, settings) -> images`
    in evaluation mode, without gradients; images float, channels first, decoded ones as means in [0, 1] (a Gaussian
    decoder's are not clipped).

`supervision=Supervision(kind, needs, amounts, make)`, for a family that needs supervision
    `make(space, settings, seed) -> Supply` chooses the supervision of one member, before its training: `Items` by name,
    each n items of one or several positions in the dataset, (n, ...), with what is known of them, (n, ...) each.
    It is a function of its arguments alone (resuming makes it again), for every seed of the same shapes, and raises
    ValueError with the reason where the factors do not allow it (`grid_of`, `cyclic_of` in `supervision` do). `used`
    says how much it is and ends in the run's config.json. `amounts` names the structural hyperparameters that say
    how much; where 0 items are allowed, `turn` must keep the optimizer step waiting.
    Labelled pairs are Items(series.index, {"turns": series.turns}), positions (n, 2), turns (n, 2, n_factors).
    An optimizer step with Draw("groups", "given") finds "groups", the images (items, 2, c, h, w), and "groups turns"
    (items, 2, n_factors) in its batch; Draw("group noise", "normal", ("latents",), of="groups") is noise for each of
    these images, (items, 2, latents). A batch has as many items as hold batch_size images, one at least and all at
    most, or `per_batch`; every item comes once before any twice.

`facts(space, settings) -> mapping` is what networks or losses must know of the dataset's factors, such as the number
    of actions or of classes: JSON values, which join the settings of `build`, `encode`, `decode` and the losses, take
    the place of settings of the same name, and end in config.json. It raises ValueError as `make` does.

`events=(Event(step, apply),)`, what is done once in a training
    `apply(modules, supply, images, hyper, context)` changes parameters or buffers in place before the optimizer steps
    move at step number `step(context)`, for one member at a time, stacked or not: WeakDE fits its class Gaussians to
    the encodings of `images(supply.items["labelled"].positions)` after the warm-up, into buffers that `build` made.

`parts(settings)` says what codes are where they are not `latents` Gaussian ones: Part("y", "circle", 2) is a unit
    vector of two codes. Codes of other kinds than "gaussian" have no log-variances; traversals go around a circle.

`log_prior(modules, settings)` gives the log density of codes under a prior that is not the standard normal, each by
    itself, (n, n_codes) -> (n, n_codes); or None where it is. Every KL that is shown or used is taken from it.

`draw_prior(modules, settings, normal, uniform)` makes codes of that prior from noise, (n, n_codes) each: what
    `Run.generate` decodes. Without it Gaussian parts are standard normal and circles uniform; points and spheres have
    no prior.

`not_stackable_reason="..."`, the reason, for a family whose members cannot be stacked; they are then trained one after
the other.

`diverges_when_stacked(precision, settings)` says whether stacked members would stray from the same members alone
    by more than docs/training.md promises; they are then trained one after the other, too.

`version=1`, raised whenever a change moves the weights that the same settings give; it is part of ids from 2 on, and
    tests/training/golden.json holds what 32 steps came to.

`by_length="..."`, the reason, for a family of which something depends on the number of steps, the schedules of TRAINING
    aside; a finished training of it cannot be continued as if it had been longer.

`presets`: published grids, each a tuple of settings: {"udr": ({"beta": 1}, {"beta": 2}, ...)}.
"""

from unbraid.families.common import COMMON, IMAGES, NOISE
from unbraid.families.family import (
    Adam,
    Batch,
    Context,
    Draw,
    Event,
    Family,
    Hyper,
    Hyperparameter,
    Items,
    Logs,
    OptimizerStep,
    Part,
    Settings,
    Supervision,
    Supply,
)
from unbraid.families.family_table import FAMILIES
from unbraid.families.supervision import alternating, cyclic_of, grid_of, named_factors
from unbraid.families.vae import build_vae, decode_vae, encode_vae, outputs_and_reconstruction

__all__ = [
    "COMMON",
    "FAMILIES",
    "IMAGES",
    "NOISE",
    "Adam",
    "Batch",
    "Context",
    "Draw",
    "Event",
    "Family",
    "Hyper",
    "Hyperparameter",
    "Items",
    "Logs",
    "Part",
    "OptimizerStep",
    "Settings",
    "Supervision",
    "Supply",
    "alternating",
    "build_vae",
    "cyclic_of",
    "decode_vae",
    "encode_vae",
    "grid_of",
    "named_factors",
    "outputs_and_reconstruction",
]
