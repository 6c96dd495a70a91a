"""Each figure shows the numbers that its data lists, and these are those of the codes, of the run, of the study."""

import csv
import io
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from tests.figures.figure_examples import (
    SPACE,
    codes_source,
    objects_source,
    representation,
    run_source,
    study_source,
)
from unbraid import score
from unbraid.figures import FIGURES, Drawn, Source, draw, open_source
from unbraid.files.table_formats import comma_separated, save_table
from unbraid.metrics import d_lsbd, mig
from unbraid.show.important import most_important_codes
from unbraid.studies.study import Study

Plain = Callable[[str, str], Drawn]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Source]]:
    folder = tmp_path_factory.mktemp("figures")
    (folder / "study").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNBRAID_DATA", str(folder / "data"))
        yield {
            "codes": codes_source(folder),
            "run": run_source(folder / "runs"),
            "objects": objects_source(folder / "runs"),
            "study": study_source(folder / "study"),
        }


@pytest.fixture(scope="module")
def plain(sources: dict[str, Source]) -> Plain:
    """A figure of a source without options, drawn once."""
    return cache(lambda name, kind: draw(name, sources[kind]))


def table(drawn: Drawn) -> dict[str, list[str]]:
    rows = list(csv.DictReader(io.StringIO(comma_separated(drawn.table))))
    return {name: [row[name] for row in rows] for name in drawn.data}


def floats(drawn: Drawn, name: str) -> np.ndarray:
    return np.array([float(text) for text in table(drawn)[name]])


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "gap"])
def test_every_figure_can_be_drawn_and_has_data(name: str, plain: Plain) -> None:
    drawn = plain(name, "objects" if name == "object-interpolation" else FIGURES[name].needs)
    columns = table(drawn)
    assert len({len(column) for column in columns.values()}) == 1
    assert len(next(iter(columns.values()))) > 2
    assert drawn.figure.axes
    assert FIGURES[name].title


def test_information_is_that_of_mig_and_squares_follow_it(plain: Plain) -> None:
    drawn = plain("information", "codes")
    held = representation()
    expected = mig(held.codes, held.factors, kinds=held.kinds).mutual_information
    np.testing.assert_allclose(floats(drawn, "mutual_information").reshape(expected.shape), expected)
    collection = drawn.figure.axes[0].collections[0]
    assert isinstance(collection, PolyCollection)
    assert len(collection.get_paths()) == np.count_nonzero(expected)
    own = [
        (row, factor)
        for row, factor, own in zip(*map(table(drawn).get, ("code", "factor", "aligned")), strict=True)
        if own == "True"
    ]  # pyright: ignore[reportArgumentType, reportCallIssue]
    assert {("3", "shape"), ("1", "pos_x"), ("2", "pos_y")} < set(own)
    assert len(own) == 4


def test_hinton_takes_the_metric_that_is_asked_for(sources: dict[str, Source]) -> None:
    drawn = draw("hinton", sources["codes"], {"metric": "dci_lasso"})
    importance = floats(drawn, "importance").reshape(6, 4)
    assert importance.argmax(axis=0).tolist()[:3] == [3, 1, 2]
    with pytest.raises(ValueError, match="explicitness has no matrix"):
        draw("hinton", sources["codes"], {"metric": "explicitness"})


def test_important_codes_lists_the_dots(plain: Plain) -> None:
    drawn = plain("important-codes", "codes")
    columns = table(drawn)
    chosen = dict(zip(columns["factor"], columns["code"], strict=True))
    assert [chosen[name] for name in SPACE.names[:3]] == ["3", "1", "2"]
    own = np.array(columns["factor"]) == "pos_x"
    dots = np.asarray(drawn.figure.axes[1].collections[0].get_offsets())
    np.testing.assert_allclose(np.sort(dots[:, 1]), np.sort(floats(drawn, "value")[own]))


def test_latents_lists_the_means_of_lines_and_maps(plain: Plain) -> None:
    drawn = plain("latents", "codes")
    held, columns = representation(), table(drawn)
    assert set(columns["code"]) == {"0", "1", "2", "3", "4"}  # the dead one is left out
    assert set(columns["factor"]) == {"shape", "pos_x and pos_y", "hue"}
    for factor, level, level_y, group, code, mean in zip(*columns.values(), strict=True):
        levels = {name: held.factors[:, k] for k, name in enumerate(held.names)}
        if " and " in factor:
            rows = (levels["pos_x"] == float(level)) & (levels["pos_y"] == float(level_y))
        else:
            rows = levels[factor] == float(level)
        if group:
            rows &= levels["shape"] == float(group.removeprefix("shape "))
        assert float(mean) == pytest.approx(held.codes[rows, int(code)].mean())


def test_circles_lists_the_points_of_the_plane(plain: Plain) -> None:
    drawn = plain("circles", "codes")
    held = representation()
    result = d_lsbd(held.codes, held.factors, kinds=held.kinds, sizes=held.sizes)
    assert len(floats(drawn, "x")) == 8  # one object: the other factors are those of the first row
    np.testing.assert_allclose(np.hypot(floats(drawn, "x"), floats(drawn, "y")), 1, atol=1e-3)
    assert drawn.figure.axes[0].get_title() == f"hue: D_LSBD {result.score:.3f}"


def test_circles_turned_back_are_as_dispersed_as_the_metric_says(plain: Plain) -> None:
    for name in ("codes", "run", "objects"):
        drawn = plain("circles", name)
        factors = np.array(table(drawn)["factor"])
        for number, factor in enumerate(dict.fromkeys(factors)):
            back = np.column_stack([floats(drawn, "back_x"), floats(drawn, "back_y")])[factors == factor]
            before = np.column_stack([floats(drawn, "x"), floats(drawn, "y")])[factors == factor]
            title = drawn.figure.axes[2 * number].get_title()
            dots = np.asarray(drawn.figure.axes[2 * number + 1].collections[0].get_offsets())
            np.testing.assert_allclose(dots, back)
            np.testing.assert_allclose(np.linalg.norm(back, axis=1), np.linalg.norm(before, axis=1))
            assert title == f"{factor}: D_LSBD {((back - back.mean(axis=0)) ** 2).sum(axis=1).mean():.3f}"


def test_kl_falls_and_says_what_is_informative(sources: dict[str, Source]) -> None:
    drawn = draw("kl", sources["codes"], {"threshold": "0.4"})
    expected = representation().mean_kl()
    assert expected is not None
    values = floats(drawn, "kl")
    assert (np.diff(values) <= 0).all()
    np.testing.assert_allclose(values, np.sort(expected)[::-1])
    assert table(drawn)["informative"][-1] == "False"
    assert table(drawn)["code"][-1] == "5"


def test_traversals_list_the_values_of_each_code(sources: dict[str, Source]) -> None:
    drawn = draw("traversals", sources["run"], {"rows": 2, "steps": "4"})
    assert len(drawn.data["code"]) == 3 * 4
    codes = sources["run"].run.representation(n=2000).codes
    for code in range(3):
        own = floats(drawn, "code") == code
        np.testing.assert_allclose(
            floats(drawn, "value")[own], np.linspace(*np.quantile(codes[:, code], [0.02, 0.98]), 4), rtol=1e-5
        )


def test_traversals_by_a_metric_are_of_the_most_important_code_of_each_factor(sources: dict[str, Source]) -> None:
    """As in DCI's figure 6, in the order of factors."""
    run = sources["run"].run
    representation = run.representation(n=2000)
    matrix = score(representation, metrics=["mig"])["mig"].mutual_information
    expected = dict.fromkeys(code for _, code in most_important_codes(matrix, representation.kinds))
    drawn = draw("traversals", sources["run"], {"rows": 1, "steps": 2, "metric": "mig"})
    assert [*dict.fromkeys(drawn.data["code"])] == [*expected]


def test_a_gap_shows_images_that_meet_its_condition_beside_others(sources: dict[str, Source]) -> None:
    """As in DCI's figure 4."""
    drawn = draw("gap", sources["run"], {"held_out": "x > y + 2", "rows": 2, "across": 3})
    x, y, in_gap = (np.array(drawn.data[name]) for name in ("x", "y", "in_gap"))
    np.testing.assert_array_equal(in_gap, np.arange(12) < 6)
    np.testing.assert_array_equal(x > y + 2, in_gap)
    sheets = [np.asarray(ax.images[0].get_array()) for ax in drawn.figure.axes if ax.images]
    expected = sources["run"].run.dataset().images(np.array(drawn.data["image"])) / 255
    for image, sheet in ((expected[0], sheets[0]), (expected[6], sheets[1])):
        np.testing.assert_allclose(sheet[: len(image), : len(image), :3], np.broadcast_to(image, (*image.shape[:2], 3)))
    with pytest.raises(ValueError, match="trained on all images; give the condition"):
        draw("gap", sources["run"])


@pytest.mark.parametrize(("name", "n_codes"), [("rotation-traversal", 7), ("object-interpolation", 7)])
def test_generated_images_are_decoded_from_the_codes_that_are_listed(
    name: str, n_codes: int, sources: dict[str, Source]
) -> None:
    drawn = draw(name, sources["objects"], {"rows": 2, "steps": 3})
    codes = np.stack([floats(drawn, f"code_{code}") for code in range(n_codes)], axis=1)
    images = np.clip(sources["objects"].run.decode(codes), 0, 1)
    strips = [ax for ax in drawn.figure.axes if ax.images]
    sheet = np.asarray(strips[0 if name == "rotation-traversal" else 1].images[0].get_array())
    for place in range(6):  # of 16 pixels, each drawn three times
        row, step = divmod(place, 3)
        shown = sheet[50 * row : 50 * row + 48 : 3, 50 * step : 50 * step + 48 : 3, :3]
        np.testing.assert_allclose(shown, images[place], atol=1e-5)


def test_reconstructions_list_their_errors(sources: dict[str, Source]) -> None:
    drawn = draw("reconstructions", sources["run"], {"images": 7, "columns": 4})
    run = sources["run"].run
    index = np.array([int(text) for text in table(drawn)["image"]])
    images = run.dataset().images(index)
    errors = ((images / 255 - run.decode(run.encode(images))) ** 2).mean(axis=(1, 2, 3))
    np.testing.assert_allclose(floats(drawn, "mean_squared_error"), errors, rtol=1e-5)
    assert len(drawn.figure.axes) == 2
    sheet = np.asarray(drawn.figure.axes[0].images[0].get_array())
    np.testing.assert_allclose(sheet[:64, :64, 0], images[0, ..., 0] / 255)


def test_curves_are_those_of_the_run(sources: dict[str, Source]) -> None:
    drawn = draw("curves", sources["run"], {"names": "kl"})
    curves = sources["run"].run.curves()
    np.testing.assert_allclose(floats(drawn, "kl"), curves["kl"])
    np.testing.assert_allclose(drawn.figure.axes[0].lines[0].get_ydata(), curves["kl"])


def test_boxes_hold_the_runs_of_each_setting(sources: dict[str, Source], plain: Plain) -> None:
    frame = sources["study"].results
    drawn = draw("boxes", sources["study"], {"column": "mig.score"})
    columns = table(drawn)
    own = [float(v) for f, s, v in zip(*columns.values(), strict=True) if (f, s) == ("beta_vae", "beta=4")]
    chosen = frame[(frame.family == "beta_vae") & (frame.setting == "beta=4")]["mig.score"].dropna()
    np.testing.assert_allclose(sorted(own), sorted(chosen))
    assert list(plain("boxes", "study").data)[2] == "udr.score"  # by default


def test_correlations_are_those_of_pandas(sources: dict[str, Source]) -> None:
    drawn = draw("correlations", sources["study"], {"columns": "mig.score,snc.score,udr.score", "group": "beta_vae"})
    frame = sources["study"].results
    own = frame[frame.family == "beta_vae"]
    for first, second, value in zip(*(table(drawn)[name] for name in ("first", "second", "value")), strict=True):
        assert float(value) == pytest.approx(own[first].corr(own[second], method="spearman"))
    assert len(drawn.data["value"]) == 3
    with pytest.raises(ValueError, match="no group 'vae' in .*; there are all, .*beta_vae"):
        draw("correlations", sources["study"], {"group": "vae"})


def test_scatter_has_a_dot_for_each_run_that_has_both(sources: dict[str, Source]) -> None:
    frame = sources["study"].results
    drawn = draw("scatter", sources["study"], {"x": "train.kl", "y": "mig.score"})
    both = frame[["train.kl", "mig.score"]].dropna()
    np.testing.assert_allclose(floats(drawn, "train.kl"), both["train.kl"])
    dots = np.concatenate([np.asarray(each.get_offsets()) for each in drawn.figure.axes[0].collections])
    assert sorted(map(tuple, dots)) == sorted(map(tuple, both.to_numpy()))
    with pytest.raises(ValueError, match=r"train.kll"):
        draw("scatter", sources["study"], {"x": "train.kll"})


def test_a_hyperparameter_over_decades_has_a_logarithmic_axis(sources: dict[str, Source]) -> None:
    drawn = draw("hyperparameter", sources["study"], {"x": "beta", "y": "mig.score"})
    axes = drawn.figure.axes[0]
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "4", "8", "16"]
    assert set(table(drawn)["family"]) == {"beta_vae", "beta_tcvae"}  # the others have no beta


def test_tradeoff_shows_means_of_settings(sources: dict[str, Source], plain: Plain) -> None:
    frame = sources["study"].results
    drawn = plain("tradeoff", "study")
    columns = table(drawn)
    place = list(zip(columns["family"], columns["setting"], strict=True)).index(("beta_vae", "beta=4"))
    own = frame[(frame.family == "beta_vae") & (frame.setting == "beta=4")].dropna(subset=["mig.score", "train.kl"])
    assert floats(drawn, "elbo")[place] == pytest.approx(-(own["train.reconstruction"] + own["train.kl"]).mean())
    assert floats(drawn, "mig.score")[place] == pytest.approx(own["mig.score"].mean())


def test_a_metric_against_its_argument_is_one_line_per_run(sources: dict[str, Source], plain: Plain) -> None:
    frame = sources["study"].results.dropna(subset=["mig.score"])
    drawn = plain("metric-argument", "study")
    lines = drawn.figure.axes[0].lines
    assert len(lines) == len(frame)
    for line, run, mig_score in zip(lines, frame["run"], frame["mig.score"], strict=True):
        own = np.array(table(drawn)["run"]) == run
        expected = [mig_score * 0.1, mig_score * 0.8, frame.set_index("run")["beta_vae_score.score"][run]]
        np.testing.assert_allclose(floats(drawn, "beta_vae_score")[own], expected)
        np.testing.assert_array_equal(floats(drawn, "batch_size")[own], [1, 8, 64])  # 64 is the default
        np.testing.assert_allclose(np.asarray(line.get_ydata()), expected)
    with pytest.raises(ValueError, match=r"mig was scored with fewer than two values of bins; add .* mig\(bins=8\)"):
        draw("metric-argument", sources["study"], {"metric": "mig", "argument": "bins"})


def test_similarity_lists_the_pairs_that_were_compared(sources: dict[str, Source]) -> None:
    drawn = draw("similarity", sources["study"], {"ranking": "spearman-all"})
    image = np.asarray(drawn.figure.axes[0].images[0].get_array(), dtype=float)
    runs = list(dict.fromkeys(drawn.data["run"]))
    for run, other, value in zip(*(drawn.data[name] for name in ("run", "other", "udr")), strict=True):
        assert image[runs.index(run), runs.index(other)] == pytest.approx(value)
    assert len(drawn.data["udr"]) == len(runs) * (len(runs) - 1)
    with pytest.raises(ValueError, match="no ranking 'lasso'; there are spearman-all"):
        draw("similarity", sources["study"], {"ranking": "lasso"})


def test_paths_are_told_apart(sources: dict[str, Source], tmp_path: Path) -> None:
    assert open_source(sources["codes"].path).kind == "codes"
    assert open_source(sources["run"].path).kind == "run"
    assert len(open_source(None).representation) == 10_000
    (tmp_path / "study.yaml").touch()
    assert open_source(tmp_path).kind == "study"
    (tmp_path / "added" / "mine").mkdir(parents=True)
    representation().save(tmp_path / "added" / "mine" / "codes.npz")
    assert open_source(tmp_path / "added" / "mine").kind == "codes"
    with pytest.raises(FileNotFoundError, match="no such file"):
        open_source(tmp_path / "nothing.npz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        ValueError, match=r"neither .* of a run .* of a folder of runs or of files of codes, give one of these"
    ):
        open_source(tmp_path / "empty")


def test_names_are_text_whatever_they_hold(tmp_path: Path) -> None:
    held = representation()
    names = ("$a_{", "x<y", "50 %", "\\frac")
    named = type(held)(held.codes, held.factors, held.log_variances, names, held.kinds, held.sizes)
    named.save(tmp_path / "named.npz")
    source = open_source(tmp_path / "named.npz")
    for name in ("important-codes", "circles"):
        drawn = draw(name, source)
        drawn.figure.draw_without_rendering()  # a name that is read as mathematics fails here
        assert names[3] in set(table(drawn)["factor"])


def test_data_is_written_whole_and_reads_back_exactly(plain: Plain, tmp_path: Path) -> None:
    drawn = plain("kl", "codes")
    save_table(tmp_path / "kl.csv", drawn.table)
    assert (tmp_path / "kl.csv").read_text(encoding="utf-8") == comma_separated(drawn.table)
    assert floats(drawn, "kl").tolist() == list(map(float, drawn.data["kl"]))  # to the last digit
    with pytest.raises(ValueError, match=r"kl.txt: a table is saved as "):
        save_table(tmp_path / "kl.txt", drawn.table)


STUDY = """
name: tiny
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: pca, latents: [2, 3]}]
seeds: 2
metrics: [mig, snc]
udr: {similarity: spearman}
"""


def test_figures_of_a_study_on_disk(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY, encoding="utf-8")
    Study.load(tmp_path / "study.yaml", out=tmp_path / "out").run(processes=0)
    source = open_source(tmp_path / "out")
    drawn = draw("boxes", source, {"column": "mig.score"})
    assert table(drawn)["setting"] == ["latents=2", "latents=2", "latents=3", "latents=3"]
    np.testing.assert_allclose(np.sort(floats(drawn, "mig.score")), np.sort(source.results["mig.score"]))
    assert len(draw("similarity", source).data["udr"]) == 12  # each of four models with the other three
