"""Which devices are taken."""

import pytest

from unbraid.base.device import choose_device


@pytest.mark.parametrize("name", ["meta", "hpu", "vulkan", "", "CPU", "cpu:x"])
def test_a_device_that_computes_nothing_here_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ValueError, match=f"^device '{name}' cannot be used here: ") as refused:
        choose_device(name)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_device_that_nobody_knows_is_answered_with_those_of_the_help() -> None:
    with pytest.raises(ValueError, match=r"^device 'gpu' cannot be used here: use auto, cpu or cuda$"):
        choose_device("gpu")
