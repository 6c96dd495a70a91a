"""The callback in a real Trainer. Importing Lightning takes seconds, which only who runs these tests pays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbraid import score

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 3, (120, 2))
INPUTS = torch.from_numpy(FACTORS @ RNG.standard_normal((2, 4)) + 0.1 * RNG.standard_normal((120, 4))).float()
KINDS: Any = ["ordinal", "ordinal"]
pytestmark = pytest.mark.filterwarnings("default")  # Lightning's own, on workers and devices


@pytest.fixture(scope="module", autouse=True)
def lightning() -> Any:
    return pytest.importorskip("lightning.pytorch")


def score_codes(**options: Any) -> Any:
    from unbraid.integrations.lightning import ScoreCodes

    return ScoreCodes(INPUTS, FACTORS, kinds=KINDS, **options)


def autoencoder() -> Any:
    import lightning.pytorch as lightning

    class Autoencoder(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5))
            self.decoder = torch.nn.Linear(3, 4)

        def encode(self, batch: Any) -> Any:
            assert not self.training
            return self.encoder(batch), torch.zeros(len(batch), 3)

        def training_step(self, batch: Any, _: int) -> Any:
            return ((self.decoder(self.encoder(batch[0])) - batch[0]) ** 2).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters(), 1e-2)

    return Autoencoder()


def trained(folder: Path, *callbacks: Any) -> tuple[Any, Any]:
    import lightning.pytorch as lightning

    torch.manual_seed(0)
    module = autoencoder()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(INPUTS), batch_size=60)
    trainer = lightning.Trainer(
        max_epochs=5, accelerator="cpu", default_root_dir=folder, callbacks=list(callbacks), logger=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(module, loader)
    return trainer, module


def test_it_scores_every_few_epochs_and_logs(lightning: Any, tmp_path: Path) -> None:
    class Seen(lightning.Callback):
        epochs: list[int] = []

        def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
            assert pl_module.training
            if "unbraid/mig" in trainer.callback_metrics:
                self.epochs.append(trainer.current_epoch)

    scored = score_codes(metrics=["mig", "snc"], every_n_epochs=2, batch_size=50)
    best = lightning.callbacks.ModelCheckpoint(tmp_path, monitor="unbraid/mig", mode="max", every_n_epochs=2)
    trainer, module = trained(tmp_path, scored, Seen(), best)
    assert Seen.epochs[0] == 1  # the second
    assert scored.card is not None
    assert trainer.callback_metrics["unbraid/mig"] == pytest.approx(scored.card["mig"].score, abs=1e-6)
    assert set(trainer.callback_metrics) >= {"unbraid/mig", "unbraid/snc"}
    assert best.best_model_path
    last = score_codes(metrics="mig")
    last.on_train_epoch_end(type("At", (), {"current_epoch": 0}), at_hand(module))
    module.eval()
    codes = module.encode(INPUTS)[0].detach()
    assert last.card is not None
    assert last.card["mig"].score == score(codes, FACTORS, kinds=KINDS, metrics="mig")["mig"].score


def at_hand(module: Any) -> Any:
    module.log_dict = lambda logged: logged
    return module


def test_an_encoder_of_ones_own(tmp_path: Path) -> None:
    scored = score_codes(encode=lambda _, batch: batch[:, :2], metrics="mig")
    trained(tmp_path, scored)
    assert scored.card is not None
    assert scored.card["mig"].score == score(INPUTS[:, :2], FACTORS, kinds=KINDS, metrics="mig")["mig"].score


def test_early_stopping_waits_for_the_first_score_and_counts_epochs(lightning: Any, tmp_path: Path) -> None:
    scored = score_codes(encode=lambda _, batch: batch[:, :2], metrics="mig",
                        every_n_epochs=2)  # fmt: skip
    stop = lightning.callbacks.EarlyStopping("unbraid/mig", mode="max", patience=1, strict=False)
    trainer, _ = trained(tmp_path, scored, stop)
    assert trainer.current_epoch == stop.stopped_epoch + 1 == 3  # scored after the second, and no better after a third


def test_parts_that_are_frozen_stay_so() -> None:
    module = autoencoder()
    module.frozen = torch.nn.BatchNorm1d(2).eval()
    modes = [each.training for each in module.modules()]
    score_codes(metrics="mig").on_train_epoch_end(type("At", (), {"current_epoch": 0}), at_hand(module))
    assert True in modes
    assert [each.training for each in module.modules()] == modes


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_inputs_have_the_precision_of_the_module(dtype: Any) -> None:
    scored = score_codes(metrics="mig")
    scored.on_train_epoch_end(type("At", (), {"current_epoch": 0}), at_hand(autoencoder().to(dtype)))
    assert scored.card is not None
