"""An optimizer of PyTorch, with its schedule, for one optimizer step of one member; its state as tensors."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unbraid.base.suggest import error_line
from unbraid.families.family import BUILT_IN_SCHEDULES, FAMILY_OPTIMIZER, uses_torch
from unbraid.families.torch_classes import torch_class
from unbraid.training.adam import AdamSettings


class TorchOptimizer:
    """Moves the parameters that one optimizer step trains."""

    def __init__(self, parameters: Mapping[str, Tensor], hyper: Mapping[str, Any], adam: AdamSettings) -> None:
        """`adam` holds the learning rate, and all else that the family's own optimizer is set by."""
        self.parameters = list(parameters.values())
        rate = float(adam.learning_rate)
        if hyper["optimizer"] == FAMILY_OPTIMIZER:
            decayed = [value for name, value in parameters.items() if name.rpartition(".")[2] == "weight"]
            plain = [value for name, value in parameters.items() if name.rpartition(".")[2] != "weight"]
            groups = [{"params": decayed, "weight_decay": float(adam.weight_decay)}, {"params": plain}]
            betas = float(adam.beta1), float(adam.beta2)
            groups = [group for group in groups if group["params"]]
            self.optimizer: Any = torch.optim.AdamW(
                groups, lr=rate, betas=betas, eps=float(adam.epsilon), weight_decay=0
            )
        else:
            optimizer, options = torch_class("torch.optim", hyper["optimizer"])
            self.optimizer = optimizer(self.parameters, lr=rate, **options)
        self.schedule: Any = None
        if hyper["schedule"] not in BUILT_IN_SCHEDULES:
            schedule, options = torch_class("torch.optim.lr_scheduler", hyper["schedule"])
            self.schedule = schedule(self.optimizer, **options)

    def step(self, gradients: Sequence[Tensor], factor: float, loss: Tensor) -> None:
        """One step at `factor` times the learning rate, then one of the schedule, by this loss if it needs one."""
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        rates = [group["lr"] for group in self.optimizer.param_groups]
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * factor
        self.optimizer.step()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self.optimizer.zero_grad()
        if isinstance(self.schedule, torch.optim.lr_scheduler.ReduceLROnPlateau):
            self.schedule.step(float(loss))
        elif self.schedule:
            self.schedule.step()

    def tensors(self) -> dict[str, Tensor]:
        """A copy of the state, in main memory; all that is not a tensor as the bytes of a JSON text."""
        state, tensors = self.optimizer.state_dict(), dict[str, Tensor]()
        plain: dict[str, dict[str, Any]] = {}
        for index, values in state["state"].items():
            plain[str(index)] = {name: value for name, value in values.items() if not isinstance(value, Tensor)}
            for name, value in values.items():
                if isinstance(value, Tensor):
                    tensors[f"{index}/{name}"] = value.detach().to("cpu", copy=True).contiguous()
        schedule = {} if self.schedule is None else self.schedule.state_dict()
        # What JSON does not give back as it was, such as milestones, is set by the options and never changes.
        schedule = {name: value for name, value in schedule.items() if _survives(value)}
        text = json.dumps({"state": plain, "groups": state["param_groups"], "schedule": schedule})
        return {**tensors, "plain": torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore a state that `tensors` gave."""
        content = json.loads(bytes(tensors["plain"].tolist()))
        state: dict[int, dict[str, Any]] = {int(index): dict(values) for index, values in content["state"].items()}
        for key, value in tensors.items():
            index, slash, name = key.partition("/")
            if slash:
                state[int(index)][name] = value.clone()
        self.optimizer.load_state_dict({"state": state, "param_groups": content["groups"]})
        if self.schedule is not None:
            self.schedule.load_state_dict(content["schedule"])


def _survives(value: Any) -> bool:
    try:
        return json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        return False


def check_optimizer(hyper: Mapping[str, Any], steps: int) -> None:
    """Takes a step of a trial with the optimizer and schedule of a member.

    Raises:
        ValueError: their options do not fit, they cannot train networks, or the schedule ends too soon.
    """
    if not uses_torch(hyper):
        return
    own = (FAMILY_OPTIMIZER, *BUILT_IN_SCHEDULES)
    names = [f"{name} {hyper[name]}" for name in ("optimizer", "schedule") if hyper[name] not in own]
    trial = {"weight": nn.Parameter(torch.zeros(2, 2)), "bias": nn.Parameter(torch.zeros(2))}
    try:
        made = TorchOptimizer(trial, hyper, AdamSettings(hyper.get("learning_rate", 1e-4), 0.9, 0.999, 1e-8))
        made.step([torch.ones(2, 2), torch.ones(2)], 1.0, torch.zeros(()))
        made.tensors()
    except Exception as error:  # whatever torch raises for options that do not fit
        raise ValueError(f"{' with '.join(names)}: {error_line(error, ValueError, RuntimeError)}") from None
    if (total := getattr(made.schedule, "total_steps", steps)) < steps:
        raise ValueError(f"{hyper['schedule']} ends after {total} of {steps} steps; set its total_steps to {steps}")
