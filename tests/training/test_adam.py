"""Our Adam against torch's, member by member."""

import pytest
import torch

from unbraid.training.adam import AdamSettings, _fused_stacked, adam_update, decay_weights

SHAPES = [(5, 3), (4,), (2, 3, 4, 4)]
SETTINGS = [(1e-3, 0.9, 0.999, 1e-8), (1e-2, 0.5, 0.9, 1e-6), (3e-4, 0.0, 0.99, 1e-8)]


def gradients(count, member):
    generator = torch.Generator().manual_seed(1000 * member + count)
    scales = (1.0, 1e-6, 100.0)
    return [torch.randn(shape, generator=generator) * scale for shape, scale in zip(SHAPES, scales, strict=True)]


def by_torch(rate, beta1, beta2, epsilon, member):
    parameters = [torch.ones(shape, requires_grad=True) for shape in SHAPES]
    optimizer = torch.optim.Adam(parameters, lr=rate, betas=(beta1, beta2), eps=epsilon)
    for count in range(1, 31):
        for parameter, gradient in zip(parameters, gradients(count, member), strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


def zeros(*lead):
    return [torch.zeros(*lead, *shape) for shape in SHAPES]


@pytest.mark.parametrize("member", [0, 1, 2])
def test_one_member_equals_torch(member):
    ours, first, second = [torch.ones(shape) for shape in SHAPES], zeros(), zeros()
    for count in range(1, 31):
        adam_update(ours, gradients(count, member), first, second, AdamSettings(*SETTINGS[member]), count)
    for mine, theirs in zip(ours, by_torch(*SETTINGS[member], member), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-6, atol=1e-7)


def test_stacked_members_with_settings_of_their_own_equal_torch():
    ours, first, second = [torch.ones(3, *shape) for shape in SHAPES], zeros(3), zeros(3)
    settings = AdamSettings(*(torch.tensor(column, dtype=torch.float64) for column in zip(*SETTINGS, strict=True)))
    for count in range(1, 31):
        stacked = [torch.stack(each) for each in zip(*(gradients(count, member) for member in range(3)), strict=True)]
        adam_update(ours, stacked, first, second, settings, count, torch.ones(3, dtype=torch.bool))
    for member in range(3):
        for mine, theirs in zip(ours, by_torch(*SETTINGS[member], member), strict=True):
            torch.testing.assert_close(mine[member], theirs, rtol=2e-6, atol=1e-7)


def test_members_that_are_not_alive_stay_to_the_bit():
    """Their moments still point somewhere, and their gradients are NaN."""
    ours, first, second = [torch.randn(2, 3)], [torch.zeros(2, 3)], [torch.zeros(2, 3)]
    settings = AdamSettings(*(torch.full((2,), each, dtype=torch.float64) for each in SETTINGS[0]))
    adam_update(ours, [torch.ones(2, 3)], first, second, settings, 1, torch.tensor([True, True]))
    before = ours[0].clone()
    gradient = torch.tensor([[float("nan")] * 3, [1.0] * 3])
    adam_update(ours, [gradient], first, second, settings, 2, torch.tensor([False, True]))
    assert torch.equal(ours[0][0], before[0])
    assert torch.isfinite(ours[0]).all()
    assert (ours[0][1] != before[1]).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_may_lie_otherwise_in_memory_than_parameters(dtype: torch.dtype) -> None:
    """As those of convolutions do, channels last; against PyTorch's own Adam."""
    torch.manual_seed(0)
    start = torch.randn(4, 3, 5, 5, dtype=dtype)
    slopes = [torch.randn(4, 3, 5, 5, dtype=dtype) for _ in range(3)]
    own = start.clone(memory_format=torch.channels_last)
    theirs = start.clone().requires_grad_()
    first, second = torch.zeros_like(own), torch.zeros_like(own)
    assert own.stride() != slopes[0].stride()
    adam = torch.optim.Adam([theirs], lr=0.1, betas=(0.8, 0.95), eps=1e-6)
    for count, slope in enumerate(slopes, start=1):
        adam_update([own], [slope], [first], [second], AdamSettings(0.1, 0.8, 0.95, 1e-6), count)
        theirs.grad = slope.clone()
        adam.step()
    torch.testing.assert_close(own, theirs.detach(), rtol=1e-5, atol=1e-6, check_stride=False)


DECAYS = (0.0, 0.1, 3.0)


def by_adamw(member: int) -> list[torch.Tensor]:
    rate, beta1, beta2, epsilon = SETTINGS[member]
    parameters = [torch.ones(shape, requires_grad=True) for shape in SHAPES]
    optimizer = torch.optim.AdamW(parameters, rate, (beta1, beta2), epsilon, weight_decay=DECAYS[member])
    for count in range(1, 31):
        for parameter, gradient in zip(parameters, gradients(count, member), strict=True):
            parameter.grad = gradient
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


@pytest.mark.parametrize("member", [0, 1, 2])
def test_weight_decay_of_one_member_equals_that_of_torch(member: int) -> None:
    ours, first, second = [torch.ones(shape) for shape in SHAPES], zeros(), zeros()
    settings = AdamSettings(*SETTINGS[member], DECAYS[member])
    for count in range(1, 31):
        decay_weights(ours, settings)
        adam_update(ours, gradients(count, member), first, second, settings, count)
    for mine, theirs in zip(ours, by_adamw(member), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-6, atol=1e-7)


def test_stacked_members_with_weight_decays_of_their_own_equal_torch() -> None:
    ours, first, second = [torch.ones(3, *shape) for shape in SHAPES], zeros(3), zeros(3)
    columns = (*zip(*SETTINGS, strict=True), DECAYS)
    settings = AdamSettings(*(torch.tensor(column, dtype=torch.float64) for column in columns))
    alive = torch.ones(3, dtype=torch.bool)
    for count in range(1, 31):
        stacked = [torch.stack(each) for each in zip(*(gradients(count, member) for member in range(3)), strict=True)]
        decay_weights(ours, settings, alive)
        adam_update(ours, stacked, first, second, settings, count, alive)
    for member in range(3):
        for mine, theirs in zip(ours, by_adamw(member), strict=True):
            torch.testing.assert_close(mine[member], theirs, rtol=2e-6, atol=1e-7)
    before = ours[0].clone()
    decay_weights(ours, settings, torch.tensor([True, False, True]))
    assert torch.equal(ours[0][1], before[1])
    assert (ours[0][2] != before[2]).all()


def test_the_fused_kernel_of_a_gpu_takes_the_same_step():
    """Called on a CPU: rates of their own, one member that has stopped, gradients that lie otherwise in memory."""
    generator = torch.Generator().manual_seed(0)
    rates = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    alive = torch.tensor([True, False, True])
    shared = [torch.full((3,), number, dtype=torch.float64) for number in (0.8, 0.95, 1e-6)]
    settings = AdamSettings(rates, *shared)
    plain = settings.with_shared_moments()
    assert (plain.beta1, plain.beta2, plain.epsilon) == (0.8, 0.95, 1e-6)
    apart = AdamSettings(rates, rates, *shared[1:])
    assert apart.with_shared_moments() is apart
    made = []
    for update, numbers in ((adam_update, settings), (_fused_stacked, plain)):
        ours, first, second = [torch.ones(3, *shape) for shape in SHAPES], zeros(3), zeros(3)
        generator.manual_seed(0)
        for count in range(1, 6):
            slopes = [torch.randn(3, *reversed(shape), generator=generator) for shape in SHAPES]
            slopes = [each.permute(0, *range(each.dim() - 1, 0, -1)) for each in slopes]
            if count > 2:  # by then its moments point somewhere
                slopes[0][1] = float("nan")
            update(ours, slopes, first, second, numbers, count, alive if count > 2 else torch.ones_like(alive))
            if count == 2:
                stopped = [each[1].clone() for each in ours]
        assert all(torch.equal(each[1], before) for each, before in zip(ours, stopped, strict=True))
        made.append([*ours, *first, *second])
    for mine, theirs in zip(*made, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=2e-6, atol=1e-7)
