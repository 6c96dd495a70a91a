"""Information of thousands of codes beside scikit-learn, in the same run on one thread, and `wide_scores` by size.

    python evidence/benchmarks/wide.py                       4096 codes, 50 000 rows, 10 factors
    python evidence/benchmarks/wide.py --codes 512 --rows 10000
    python evidence/benchmarks/wide.py --whole               16 384 sparse codes, 100 000 rows, 50 factors: time and memory
    python evidence/benchmarks/wide.py --sae                 preset sae as a command, of sparse and of dense codes
    python evidence/benchmarks/wide.py --csr                 mig, sap, mcc and snc as a command, 50 000 x 65 536, .5 % stored

scikit-learn takes one pair of code and factor at a time, of codes that are binned already; it is given a few pairs, and
its time is multiplied. The first call compiles our kernels and is not counted.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from scipy import sparse
from sklearn.metrics import mutual_info_score

from unbraid.metrics import wide_scores, wide_udr
from unbraid.metrics._shared.bins import bin_equal_width
from unbraid.metrics._shared.information import mutual_information
from unbraid.metrics._shared.inputs import Levels


def main() -> None:
    """Print what each takes."""
    parser = argparse.ArgumentParser()
    for name, default in (("codes", 4096), ("rows", 50_000), ("factors", 10), ("pairs", 40)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--sae", action="store_true")
    parser.add_argument("--csr", action="store_true")
    given = parser.parse_args()
    if given.sae:
        sae()
        return
    if given.csr:
        csr()
        return
    if given.whole:
        whole()
        return
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 10, (given.rows, given.factors))
    levels = Levels(factors, (10,) * given.factors, ())
    mutual_information(bin_equal_width(rng.standard_normal((100, 2))), Levels(factors[:100], levels.sizes, ()))
    ours = peer = 0.0
    for start in range(0, given.codes, 256):
        part = bin_equal_width(rng.standard_normal((given.rows, min(256, given.codes - start))))
        began = time.perf_counter()
        found = mutual_information(part, levels)
        ours += time.perf_counter() - began
        if not start:
            pairs = [(pair % part.shape[1], pair % given.factors) for pair in range(given.pairs)]
            began = time.perf_counter()
            theirs = [mutual_info_score(part[:, code], factors[:, factor]) for code, factor in pairs]
            peer = (time.perf_counter() - began) / given.pairs * given.codes * given.factors
            np.testing.assert_allclose(theirs, [found[pair] for pair in pairs], atol=1e-9)
    print(f"information of {given.codes} codes, {given.rows} rows, {given.factors} factors: {ours:.1f} s")
    print(f"scikit-learn, extrapolated from {given.pairs} pairs: {peer:.0f} s, {peer / ours:.0f} times as long")
    for codes, rows in ((256, 4_000), (512, 4_000), (512, 8_000)):
        held = sparse.random(rows, codes, density=0.02, format="csc", random_state=0)
        began = time.perf_counter()
        wide_scores(held, factors[:rows])
        print(f"wide_scores of {codes} sparse codes, {rows} rows: {time.perf_counter() - began:.1f} s")


def whole() -> None:
    """Every metric that reads codes by columns, of sparse codes as wide as those of a sparse autoencoder."""
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 10, (100_000, 50))
    # About 1 000 values a code; `sparse.random` would number all cells first.
    rows, columns = (
        rng.integers(0, 100_000, 16_384_000, dtype=np.int32),
        np.repeat(np.arange(16_384, dtype=np.int32), 1_000),
    )
    held = sparse.coo_array((rng.random(16_384_000), (rows, columns)), shape=(100_000, 16_384)).tocsc()
    del rows, columns
    wide_scores(held[:2_000, :20], factors[:2_000, :3])
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = wide_scores(held, factors)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"wide_scores of 16 384 sparse codes, 100 000 rows, 50 factors: {time.process_time() - began:.0f} s of one core"
    )
    print(f"{peak / 2**20:.1f} GiB at most, {before / 2**20:.1f} before; {len(found.leading)} codes matter")
    for correlation in ("pearson", "spearman"):
        began = time.process_time()
        wide_udr([held, held[:, ::-1]], correlation=correlation, top=10)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"wide_udr of two such models, {correlation}: {time.process_time() - began:.0f} s of one core", end=", ")
        print(f"{peak / 2**20:.1f} GiB at most")


def sae() -> None:
    """What `unbraid score --metrics sae` takes, as a process of its own, of files of 16 384 codes and 30 labels."""
    rng, n_codes = np.random.default_rng(0), 16_384
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        per_code = 110  # of 20 000 rows: .55 %
        cells = rng.integers(0, 20_000, n_codes * per_code), np.repeat(np.arange(n_codes), per_code)
        held = sparse.coo_array((rng.random(len(cells[0]), dtype=np.float32), cells), shape=(20_000, n_codes))
        for kind in ("csr", "csc"):
            sparse.save_npz(home / f"{kind}.npz", held.asformat(kind))
        np.save(home / "dense.npy", rng.standard_normal((5_000, n_codes), dtype=np.float32))
        for name, rows in (("csr.npz", 20_000), ("csc.npz", 20_000), ("dense.npy", 5_000)):
            np.save(home / "labels.npy", rng.integers(0, 2, (rows, 30)))
            scored(home / name, home / "labels.npy", "sae")


def csr() -> None:
    """Codes of a large sparse autoencoder by rows, as encoders write them, and 30 labels of two values."""
    rng, n_rows, n_codes = np.random.default_rng(0), 50_000, 65_536
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        per_row = round(0.005 * n_codes)
        # One code of each stretch of 200, so that none comes twice in a row.
        columns = rng.integers(0, n_codes // per_row, (n_rows, per_row), dtype=np.int32)
        columns += np.arange(per_row, dtype=np.int32) * (n_codes // per_row)
        values = rng.random(columns.size, dtype=np.float32)
        edges = np.arange(n_rows + 1, dtype=np.int32) * per_row
        held = sparse.csr_array((values, columns.ravel(), edges), shape=(n_rows, n_codes))
        sparse.save_npz(home / "csr.npz", held, compressed=False)
        np.save(home / "labels.npy", rng.integers(0, 2, (n_rows, 30)))
        del held, values, columns
        scored(home / "csr.npz", home / "labels.npy", "mig,sap,mcc,snc")


def scored(codes: Path, labels: Path, metrics: str) -> None:
    """Print the time and the memory of the command."""
    files = [str(codes), "--labels", str(labels)]
    command = [sys.executable, "-m", "unbraid", "score", *files, "--metrics", metrics]
    began = time.perf_counter()
    pid = os.posix_spawn(sys.executable, command, os.environ)
    _, status, used = os.wait4(pid, 0)
    seconds, waited = used.ru_utime + used.ru_stime, time.perf_counter() - began
    print(
        f"{codes.name}: {seconds:.0f} s of one core ({waited:.0f} s by the clock), {used.ru_maxrss / 2**20:.2f} GiB at "
        f"most, exit {status}"
    )


if __name__ == "__main__":
    main()
