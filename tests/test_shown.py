import numpy as np

from unbraid import Representation
from unbraid._shown import with_names
from unbraid.metrics import METRICS, mig
from unbraid.ranking import rank

RNG = np.random.default_rng(0)
CODES, FACTORS = RNG.normal(size=(400, 3)), RNG.integers(0, 4, (400, 2))


def test_results_tell_numbers_and_the_shapes_of_arrays() -> None:
    result = mig(FACTORS, FACTORS)
    assert repr(result).startswith(f"MIG(score={result.score:.4g}, ")
    assert "mutual_information=(2, 2) float64" in repr(result)
    assert "<td>(2, 2) float64</td>" in result._repr_html_()


def test_no_result_dumps_an_array() -> None:
    for name, metric in METRICS.items():
        if not metric.needs:
            assert len(repr(metric.function(CODES, FACTORS))) < 900, name


def test_rankings_and_representations_are_told_in_a_line() -> None:
    assert "codes=(400, 3) float64, factors=(400, 2) int64" in repr(Representation(CODES, FACTORS))
    assert len(repr(rank([CODES, -CODES], similarity="spearman"))) < 600


def test_names_are_no_markup() -> None:
    shown = Representation(CODES, FACTORS, names=("<b>", "size"))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_factors_are_called_by_their_names() -> None:
    names = ("shape", "hue", "factor_2", "2 eyes")
    assert with_names("factor 1: so", names) == "factor hue: so"
    assert with_names("factors 0, 3 and 1; code 1", names) == "factors shape, 2 eyes and hue; code 1"
    assert with_names("codes 0 and 1 of factor 0", names, ("V1/7", "MT")) == "codes V1/7 and MT of factor shape"
    assert with_names("factor 2 and factor 7 of 1 factor", names) == "factor 2 and factor 7 of 1 factor"
