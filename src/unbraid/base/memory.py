"""How much memory is free, and whether what is asked for fits into it."""

from collections.abc import Iterator
from pathlib import Path

MARGIN = 1.2  # over what was measured: evidence/benchmarks/memory.py shows it beside the estimates


def check_memory(needed: float, advice: str) -> None:
    """
    Args:
        needed: bytes, beside those that are taken already, without margin.
        advice: what needs less.

    Raises:
        ValueError: with the margin it is more than is free. Where the system does not say how much is, nothing is
            checked.
    """
    free, needed = free_memory(), MARGIN * needed
    if free is not None and needed > free:
        raise ValueError(f"needs about {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free: {advice}")


def free_memory(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that this process may take: what Linux calls available, or what its control groups leave, if less."""
    try:
        lines = (proc / "meminfo").read_text().splitlines()
        own = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return None
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    if "MemAvailable" not in fields:
        return None
    available = 1024 * int(fields["MemAvailable"].split()[0])
    return min([available, *(left for line in own for left in _left(line, groups))])


def _left(line: str, groups: Path) -> Iterator[int]:
    """What the limits of a control group, as a line of /proc/self/cgroup names it, and of those around it leave."""
    _, controllers, place = line.split(":", 2)
    if controllers == "":
        root, limit, used, cache = groups, "memory.max", "memory.current", "inactive_file"
    elif "memory" in controllers.split(","):
        root, limit, used, cache = (
            groups / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
        )  # fmt: skip
    else:
        return
    folder = root / place.lstrip("/")
    for group in (folder, *folder.parents):
        if group.is_relative_to(root) and (group / limit).is_file() and (group / used).is_file():
            most = (group / limit).read_text().strip()
            if most != "max":
                yield max(int(most) - int((group / used).read_text()) + _cached(group / "memory.stat", cache), 0)


def _cached(path: Path, name: str) -> int:
    """Bytes of files in memory that the system gives back when others need it."""
    if not path.is_file():
        return 0
    return sum(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(f"{name} "))
