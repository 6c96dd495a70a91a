"""What `make demo` shows: without labels, a model is chosen that the labels call one of the best."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.stats import spearmanr

from unbraid import Study
from unbraid.studies.study_ranking import rank_study

YAML = Path(__file__).parents[2] / "evidence" / "studies" / "demo.yaml"
PLAIN = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}


@pytest.mark.slow
@pytest.mark.parametrize("kernels", [{}, PLAIN], ids=["own kernels", "without vector instructions"])
def test_the_demo_chooses_a_good_model_among_good_and_rotated_ones(tmp_path: Path, kernels: dict[str, str]) -> None:
    command = [sys.executable, "-m", "unbraid", "study", "run", str(YAML), "--out", str(tmp_path / "demo")]
    subprocess.run(command, env={**os.environ, **kernels}, check=True, timeout=1500, capture_output=True)
    study = Study.load(tmp_path / "demo")
    frame = study.results().set_index("run")
    mig = frame["mig.score"]
    assert len(mig) == 12
    assert mig.max() > 0.27, "some are aligned"
    assert (mig < 0.6 * mig.max()).sum() >= 3, "some are not"
    ranking = rank_study(study.snapshot())
    assert ranking.best is not None
    assert mig[ranking.best] > 0.75 * mig.max()
    assert (mig > mig[ranking.best]).sum() <= 3
    assert spearmanr(frame["udr.score"], mig)[0] > 0.5
