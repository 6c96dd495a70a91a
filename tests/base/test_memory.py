"""Free memory as Linux and its control groups tell it, and what needs more."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unbraid.base.memory
import unbraid.scoring.card_memory
from unbraid import Representation, compare, rank, score
from unbraid.base.memory import free_memory


def system(root: Path, own: str, **files: str) -> tuple[Path, Path]:
    """Folders that stand for /proc and /sys/fs/cgroup."""
    (root / "proc" / "self").mkdir(parents=True)
    (root / "proc" / "meminfo").write_text("MemTotal: 9000 kB\nMemAvailable: 8000 kB\n")
    (root / "proc" / "self" / "cgroup").write_text(own)
    for name, content in files.items():
        path = root / "groups" / name.replace("__", "/").replace("_of_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root / "proc", root / "groups"


def test_free_memory_is_what_the_narrowest_group_leaves(tmp_path: Path) -> None:
    mega = 1_000_000
    files = {"memory_of_max": "max", "memory_of_current": "5"}
    assert free_memory(*system(tmp_path / "none", "0::/job/x\n", **files)) == 8000 * 1024
    files |= {
        "job__memory_of_max": str(5 * mega), "job__memory_of_current": str(4 * mega),
        "job__memory_of_stat": f"anon 7\ninactive_file {mega}\n",
    }  # fmt: skip
    assert free_memory(*system(tmp_path / "second", "0::/job/x\n", **files)) == 2 * mega
    files = {"memory__memory.limit_in_bytes": str(3 * mega), "memory__memory.usage_in_bytes": str(mega)}
    assert free_memory(*system(tmp_path / "first", "4:memory:/job\n0::/\n", **files)) == 2 * mega
    assert free_memory(tmp_path / "no", tmp_path) is None


def test_what_needs_more_than_is_free_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = np.tile([[0, 1], [1, 0], [1, 1]], (10, 1))
    monkeypatch.setattr(unbraid.base.memory, "free_memory", lambda: 15_000)
    monkeypatch.setattr(unbraid.scoring.card_memory, "AT_ONCE", 10)
    with pytest.raises(ValueError, match="^needs about 0.0 GB and 0.0 GB are free: give fewer rows, or metrics.*mig"):
        score(np.eye(30, 4), factors, metrics="irs")
    assert "mig" in score(np.eye(30, 4), factors, metrics="mig").scored
    monkeypatch.setattr(unbraid.base.memory, "free_memory", lambda: None)
    assert "irs" in score(np.eye(30, 4), factors, metrics="irs").scored


ROWS, WIDTH = 400, 3
CODES = np.random.default_rng(0).normal(size=(6, ROWS, WIDTH))
FACTORS = np.random.default_rng(1).integers(0, 3, (ROWS, 2))
MATRIX = 8 * ROWS * WIDTH  # bytes of the codes of one model


def free(monkeypatch: pytest.MonkeyPatch, n_bytes: float) -> None:
    monkeypatch.setattr(unbraid.base.memory, "free_memory", lambda: n_bytes)


def test_codes_that_are_read_by_columns_take_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 230_000)
    assert score(CODES[0], FACTORS, metrics="mig").scored
    free(monkeypatch, 200_000)
    with pytest.raises(ValueError, match="^needs about .* are free: give fewer rows$"):
        score(CODES[0], FACTORS, metrics="mig")


def test_compare_counts_the_codes_of_all_models_before_it_scores_one(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 300_000)
    asked: list[str] = []
    models = [Representation.of(each, FACTORS) for each in CODES]

    def compared(n_models: int) -> None:
        named = {str(place): each for place, each in enumerate(models[:n_models])}
        compare(named, metrics=["mig"], progress=lambda metric, *_: asked.append(metric))

    compared(2)
    assert asked
    asked.clear()
    with pytest.raises(ValueError, match="^needs about .* are free: give fewer rows$"):
        compared(6)
    assert not asked


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("options", "enough"),
    [({}, 9), ({"similarity": "spearman"}, 11), ({"top": 2}, 12), ({"top": 2, "similarity": "pearson"}, 7)],
)
def test_rank_counts_the_codes_of_all_models(
    options: dict[str, Any], enough: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    related = 8 * 6 * 512 * WIDTH if "top" in options else 0
    free(monkeypatch, enough * MATRIX + 1.2 * related)
    assert len(rank(list(CODES[:2]), **options).scores) == 2
    with pytest.raises(ValueError, match="^needs about .* are free: give fewer rows or models$"):
        rank(list(CODES), **options)


def test_sparse_codes_are_ranked_in_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.random.default_rng(0).random((2, ROWS, 100))
    held = [sparse.csr_array(np.where(each < 0.02, each, 0)) for each in drawn]
    free(monkeypatch, 1.2 * 8 * 6 * 512 * 100 + 1.2 * 12 * 5.2 * held[0].nnz)
    assert len(rank(held, top=2).scores) == 2
    with pytest.raises(ValueError, match="are free"):
        rank([each.toarray() for each in held], top=2)
