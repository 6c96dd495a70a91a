"""Free memory as Linux and its control groups tell it, and what needs more."""

from pathlib import Path

import numpy as np
import pytest

import unbraid._utils.memory
from unbraid import score
from unbraid._utils.memory import free_memory


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
    monkeypatch.setattr(unbraid._utils.memory, "free_memory", lambda: 100)
    with pytest.raises(ValueError, match="^needs about 0.0 GB and 0.0 GB are free: give fewer rows, or metrics.*mig"):
        score(np.eye(30, 4), factors, metrics="irs")
    assert "mig" in score(np.eye(30, 4), factors, metrics="mig").scored
    monkeypatch.setattr(unbraid._utils.memory, "free_memory", lambda: None)
    assert "irs" in score(np.eye(30, 4), factors, metrics="irs").scored
