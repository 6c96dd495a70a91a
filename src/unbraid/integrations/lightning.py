"""Lightning: a callback that scores a model while it is trained."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from unbraid.base.optional import require
from unbraid.data import Representation
from unbraid.files.trust import trusting
from unbraid.integrations.single_metric import Kinds
from unbraid.scoring.card import ScoreCard
from unbraid.scoring.score import Named, choose, score

__all__ = ["ScoreCodes"]

torch = require("torch", "lightning", "ScoreCodes")
lightning = require("lightning.pytorch", "lightning", "ScoreCodes")


class ScoreCodes(lightning.Callback):
    """Score the codes of the same inputs after every few epochs, and log the headline of each metric.

    The names are "unbraid/mig" and so on, for loggers, progress bars, `EarlyStopping` and `ModelCheckpoint`. `card` is
    the latest card in full.

    Args:
        inputs: (n_samples, ...) tensor, encoded in batches on the device of the module, numbers in its precision.
        factors: (n_samples, n_factors) of these, as `unbraid.score` takes them.
        encode: from the module and a batch to codes (n, n_codes), or to a tuple that begins with them. Default: its
            method `encode` where it has one, else its `forward`.
        metrics, kinds: as for `unbraid.score`.
        every_n_epochs: how often. Before the first of these there is no number: `ModelCheckpoint` needs the same
            `every_n_epochs`, and `EarlyStopping` `strict=False`, whose patience counts all epochs.
        batch_size: rows per call of `encode`.
        **options: as for `unbraid.score`.

    Raises:
        ImportError: torch or lightning is not installed.
        ValueError: an unknown metric, or factors of other rows or that cannot be read.
    """

    def __init__(
        self,
        inputs: Any,
        factors: Any,
        *,
        encode: Callable[[Any, Any], Any] | None = None,
        metrics: Named | Sequence[Named] = "standard",
        kinds: Kinds | None = None,
        every_n_epochs: int = 1,
        batch_size: int = 256,
        **options: Any,
    ) -> None:
        choose(trusting(metrics))  # what is wrong is said before a training
        read = {name: options[name] for name in ("names", "sizes", "period", "missing", "columns") if name in options}
        Representation.of(np.zeros((len(inputs), 1)), factors, kinds=kinds, **read)
        self.inputs, self.factors, self.encode = inputs, factors, encode
        self.every_n_epochs, self.batch_size = every_n_epochs, batch_size
        self._options = {"metrics": metrics, "kinds": kinds, **options}
        self.card: ScoreCard | None = None

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Score, if this is one of the epochs."""
        if (trainer.current_epoch + 1) % self.every_n_epochs:
            return
        self.card = score(self._codes(pl_module), self.factors, **self._options)
        pl_module.log_dict({f"unbraid/{name}": scored.headline for name, scored in self.card.scored.items()})

    def _codes(self, module: Any) -> Any:
        encode = self.encode or (lambda module, batch: getattr(module, "encode", module)(batch))
        modes = {part: part.training for part in module.modules()}  # a part may be frozen, as batch norms are
        module.eval()
        try:
            with torch.no_grad():
                encoded = [encode(module, _as_of(module, batch)) for batch in self.inputs.split(self.batch_size)]
        finally:
            for part, trained in modes.items():
                part.training = trained
        return torch.cat([output[0] if isinstance(output, tuple | list) else output for output in encoded]).cpu()


def _as_of(module: Any, batch: Any) -> Any:
    """On the device of a module, numbers in its precision, labels and other whole numbers as they are."""
    return batch.to(module.device, module.dtype) if batch.is_floating_point() else batch.to(module.device)
