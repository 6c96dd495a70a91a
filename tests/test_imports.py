"""What may import what, how quickly, and with how little installed."""

import ast
import importlib
import importlib.util
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from graphlib import TopologicalSorter
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

import unbraid

SOURCE = Path(__file__).parent.parent / "src" / "unbraid"

# The floors of the package: a room imports those of lower floors, and itself.
MEASURING = (
    {"base"},
    {"files"},
    {"data"},
    {"metrics"},
    {"show"},
    {"scoring"},
    {"ranking"},
)
FLOORS = (
    *MEASURING,
    {"datasets", "families", "integrations"},
    {"runs"},
    {"training"},
    {"studies"},
    {"figures", "fitting"},
    {"zoo"},
    {"cli"},
    {"__main__"},
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS, 1) for room in rooms}
SHARED = "unbraid.metrics._shared"  # what metrics share, and with whoever scores


@cache
def import_statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


@cache
def imports(path: Path) -> frozenset[str]:
    found: set[str] = set()
    for node in import_statements(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif node.module:
            found.add(node.module)
    return frozenset(found)


def test_every_room_stands_on_a_floor() -> None:
    homes = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}
    assert homes - {"__init__"} == set(FLOOR)


PATHS = sorted(SOURCE.rglob("*.py"))


def test_imports_point_one_way() -> None:
    upward = []
    for path in PATHS:
        home = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for name in imports(path) if home != "__init__" else ():
            target = name.split(".")[1] if name.startswith("unbraid.") else home
            if target != home and FLOOR[target] >= FLOOR[home]:
                upward.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert upward == []


def test_measuring_imports_nothing_of_training() -> None:
    """Scores and rankings of codes need neither datasets nor families nor runs, not even lazily."""
    lower = {room for rooms in MEASURING for room in rooms}
    foreign = [
        f"{path.relative_to(SOURCE)} imports {name}"
        for room in lower
        for path in (SOURCE / room).rglob("*.py")
        for name in imports(path) | imported_names(path)
        if name.startswith("unbraid.") and name.split(".")[1] in set(FLOOR) - lower
    ]
    assert foreign == []


def test_a_name_of_a_file_is_used_once() -> None:
    names = Counter(path.name for path in PATHS if path.name != "__init__.py")
    assert [name for name, count in names.items() if count > 1] == []


def test_private_modules_are_their_own_packages_affair() -> None:
    foreign = []
    for path in PATHS:
        for name in imports(path):
            owner, _, private = name.rpartition("._")
            if not private or not owner.startswith("unbraid.") or name.startswith(SHARED):
                continue
            if not f"{name_of(path)}.".startswith(f"{owner}."):
                foreign.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert foreign == []


def test_no_module_imports_itself_by_a_detour() -> None:
    """Neither when it is loaded nor later, nor for its types."""
    modules = {name_of(path): path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"}
    graph = {
        name: {target for each in imported_names(path) if (target := within(each, modules)) and target != name}
        for name, path in modules.items()
    }
    assert tuple(TopologicalSorter(graph).static_order())  # or CycleError


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(("unbraid", *(part for part in parts if part != "__init__")))


def imported_names(path: Path) -> set[str]:
    froms = [node for node in import_statements(path) if isinstance(node, ast.ImportFrom) and node.module]
    return {f"{node.module}.{alias.name}" for node in froms for alias in node.names}


def within(name: str, modules: Mapping[str, Path]) -> str | None:
    """The module that a name is, or lies in."""
    return name if name in modules else parent if (parent := name.rpartition(".")[0]) in modules else None


SCRIPTS = sorted(
    path for folder in ("evidence", "evidence/benchmarks") for path in (SOURCE.parents[1] / folder).glob("*.py")
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_that_no_test_runs_import_what_is_there(path: Path) -> None:
    """Benchmarks run for hours, so that nobody would notice for long."""
    missing = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "unbraid":
            home = importlib.import_module(str(node.module))
            named = [each.name for each in node.names]
            missing += [name for name in named if not hasattr(home, name) and not _is_module(home, name)]
    assert not missing


def _is_module(home: ModuleType, name: str) -> bool:
    return hasattr(home, "__path__") and importlib.util.find_spec(f"{home.__name__}.{name}") is not None


def test_metrics_import_neither_torch_nor_datasets() -> None:
    for path in (SOURCE / "metrics").glob("*.py"):
        assert not {name.partition(".")[0] for name in imports(path)} & {"torch", "matplotlib", "ray", "pandas"}


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments, "-c", code], capture_output=True, text=True, env=environment or None, check=False
    )


def test_neither_the_package_nor_the_command_line_brings_a_heavy_package() -> None:
    """Each costs a tenth of a second or more: commands import what they need when they run."""
    code = (
        "import sys; heavy = ('torch', 'matplotlib', 'scipy', 'sklearn', 'numba', 'pandas', 'pydantic',"
        "'anndata', 'torchmetrics', 'lightning'); all = (*heavy, 'numpy', 'yaml', 'importlib.metadata');"
        "import unbraid; print('package', *[name for name in all if name in sys.modules]);"
        "import unbraid.cli.app; print('commands', *[name for name in all if name in sys.modules]);"
        "import unbraid.studies.status; print('status', *[name for name in heavy if name in sys.modules])"
    )
    done = run(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["package", "commands", "status", "pydantic"]


@pytest.mark.lengthy
def test_scores_of_arrays_and_figures_of_codes_load_neither_torch_nor_pandas() -> None:
    code = (
        "import sys, numpy as np, unbraid; held = unbraid.Representation.example();"
        "unbraid.score(held.codes[:200], held.factors[:200].astype(int), metrics='mig', groups=np.arange(200) // 2);"
        "from unbraid.figures import draw, open_source; print(len(draw('kl', open_source(None)).data['kl']));"
        "assert not {'torch', 'pandas', 'pyarrow'} & set(sys.modules)"
    )
    done = run(code)
    assert (done.stdout, done.returncode) == ("10\n", 0), done.stderr


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to import from: NumPy, SciPy, scikit-learn, numba, platformdirs, what these need, and no more."""
    folder = tmp_path_factory.mktemp("bare")
    wanted, seen = ["numpy", "scipy", "scikit-learn", "numba", "platformdirs"], set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        distribution = metadata.distribution(name)
        for file in distribution.files or ():
            top = file.parts[0]
            if top != ".." and not (folder / top).exists():
                (folder / top).symlink_to(Path(str(distribution.locate_file(top))))
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    described = metadata.distribution("unbraid")
    info = next(file for file in described.files or () if file.name == "METADATA")
    (folder / info.parts[0]).symlink_to(Path(str(described.locate_file(info.parts[0]))))
    return folder


@pytest.mark.lengthy
def test_metrics_work_where_torch_matplotlib_and_ray_are_not_installed(bare: Path) -> None:
    code = """
import importlib.util, sys
absent = ["torch", "matplotlib", "ray", "pandas", "rich", "typer", "pydantic"]
assert not [name for name in absent if importlib.util.find_spec(name)]
import numpy as np
from unbraid import metrics
from unbraid.data import FactorSpace
grid = np.tile(FactorSpace(("a", "b"), (3, 4), ("ordinal", "ordinal")).grid(), (10, 1))
for name, metric in metrics.METRICS.items():
    if not metric.needs:
        value = getattr(metric.function(grid.astype(float), grid), metric.headline)
        assert np.isfinite(value), name
print(len(metrics.METRICS))
"""
    # -S leaves the installed packages out, -I everything of the user's.
    path = f"import sys; sys.path[:0] = {[str(bare), str(SOURCE.parent)]}\n"
    done = run(path + code, "-I", "-S")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_what_a_system_may_lack_is_imported_where_it_is_used() -> None:
    posix = {"fcntl", "grp", "pwd", "resource", "termios"}
    found = []
    for path in PATHS:
        for node in import_statements(path):
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else {str(node.module)}
            if node.col_offset:
                continue
            found += [f"{path.relative_to(SOURCE)} imports {name}" for name in names & posix]
    assert found == []


@pytest.mark.lengthy
def test_what_needs_torch_is_there_without_it_and_says_so_when_it_is_used() -> None:
    code = """
import sys
sys.modules["torch"] = None
import unbraid
from unbraid import Study, families, load_run, train
assert [hasattr(unbraid, name) for name in (*unbraid.__all__, "absent")] == [True] * len(unbraid.__all__) + [False]
assert not hasattr(Study, "load")
for use in (lambda: train("vae"), lambda: load_run("run"), lambda: Study.load("study"), lambda: families.FAMILIES):
    try:
        use()
    except (ImportError, AttributeError) as error:
        print(error)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    names = "train", "load_run", "Study", "families"
    assert done.stdout.splitlines() == [f"unbraid.{name} needs torch: pip install 'unbraid[train]'" for name in names]


def test_the_package_shows_what_it_promises_and_nothing_else() -> None:
    assert dir(unbraid) == sorted([*unbraid.__all__, "__version__"])
    for name in unbraid.__all__:
        assert getattr(unbraid, name) is not None
