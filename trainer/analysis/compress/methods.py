"""Three ways to make a network smaller, each with its own training where it needs some."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from trainer.analysis.compress.measure import tensor
from trainer.analysis.compress.subject import Subject
from trainer.data.dataset import Dataset
from trainer.data.loading.placement import TensorPartition
from trainer.engine.loop import fit
from trainer.engine.training import Plan, Training, new_training
from trainer.models.build import build
from trainer.models.int8 import quantized
from trainer.models.losses import CROSS_ENTROPY, SQUARED_ERROR, LossSum, batch_weight_of, loss_sum_of
from trainer.models.storage import without_zeros
from trainer.tasks.prepared import Task
from trainer.tasks.records.rows import model_record

TEMPERATURE = 2.0  # softens the teacher's probabilities, so that the order of the wrong classes counts, too
ROUNDS = 3  # of pruning and tuning: pruned at once, a network loses more


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings of compression: the student's hidden widths, share of weights to remove, epochs, the teacher's share."""

    student_layers: tuple[int, ...]
    sparsity: float
    epochs: int
    learning_rate: float
    teacher_share: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class Smaller:
    """A smaller network, its description, the tensors of its file, and what is to be known of how it was made."""

    network: nn.Module
    description: dict[str, Any]
    tensors: dict[str, Tensor]
    facts: dict[str, Any]


def distill(subject: Subject, recipe: Recipe) -> Smaller:
    """Train a smaller network on what the large one answers as well as on the truth (Hinton 2015, arXiv 1503.02531).

    The same network is trained on the truth alone, too, so that it is seen what the teacher adds.
    """
    model = replace(subject.model, hidden_layers=recipe.student_layers)
    model.require_fitting({})
    description = model_record(model, subject.task)
    student = trained(subject, build_seeded(description, recipe.seed), recipe, teacher=subject.network)
    alone = trained(subject, build_seeded(description, recipe.seed), recipe)
    facts = {
        "student_layers": list(recipe.student_layers),
        "temperature": TEMPERATURE if subject.task.labels else None,
        "teacher_share": recipe.teacher_share,
        "without_teacher": alone,
    }
    return Smaller(network=student, description=description, tensors=dense(student), facts=facts)


def prune(subject: Subject, recipe: Recipe) -> Smaller:
    """Remove the smallest weights of all Linear layers together, in rounds, and tune what is left after each."""
    network = copy.deepcopy(subject.network)
    for turn in range(1, ROUNDS + 1):
        masks = masks_of(network, 1 - (1 - recipe.sparsity) ** (turn / ROUNDS))
        network = trained(subject, network, replace(recipe, epochs=-(-recipe.epochs // ROUNDS)), masks=masks)
    removed = 1 - sum(int(mask.sum()) for mask in masks.values()) / sum(mask.numel() for mask in masks.values())
    description = {**vars(subject.metadata.model), "storage": "bitmask"}
    facts = {"sparsity_asked": recipe.sparsity, "sparsity": removed, "rounds": ROUNDS}
    return Smaller(network=network, description=description, tensors=without_zeros(dense(network)), facts=facts)


def int8(subject: Subject, _: Recipe) -> Smaller:
    """Round the weights of all Linear layers to int8, with a scale for each output; nothing is trained."""
    network = quantized(copy.deepcopy(subject.network))
    description = {**vars(subject.metadata.model), "storage": "int8"}
    facts = {"layers": "Linear", "scales": "one for each output; inputs by row, as they come"}
    return Smaller(network=network, description=description, tensors=dense(network), facts=facts)


METHODS = {"distill": distill, "prune": prune, "int8": int8}


def build_seeded(description: Mapping[str, Any], seed: int) -> nn.Module:
    """Return the network with the first weights that `seed` gives."""
    torch.manual_seed(seed)
    return build(description)


def dense(network: nn.Module) -> dict[str, Tensor]:
    """Return the network's weights as a file holds them."""
    return {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}


def masks_of(network: nn.Module, sparsity: float) -> dict[str, Tensor]:
    """Return for each Linear layer's weight which values stay: all but the smallest share of all layers together."""
    weights = {
        f"{name}.weight".lstrip("."): layer.weight.detach()
        for name, layer in network.named_modules()
        if isinstance(layer, nn.Linear)
    }
    sizes = torch.cat([weight.abs().flatten() for weight in weights.values()])
    removed = sizes.argsort(stable=True)[: round(sparsity * len(sizes))]
    stays = torch.ones(len(sizes), dtype=torch.bool)
    stays[removed] = False
    pieces = stays.split([weight.numel() for weight in weights.values()])
    return {name: piece.reshape(weight.shape) for (name, weight), piece in zip(weights.items(), pieces, strict=True)}


def trained(
    subject: Subject,
    network: nn.Module,
    recipe: Recipe,
    *,
    teacher: nn.Module | None = None,
    masks: Mapping[str, Tensor] | None = None,
) -> nn.Module:
    """Return `network` after training on the run's training part, with the weights of the best validation loss.

    Weights outside `masks` are 0 before the first step and after every step.

    Args:
        network: network to train, in place.
        teacher: network whose outputs are imitated; None for the targets alone.
        masks: 1 for each weight that is kept and 0 for others, by the weight's name.
    """
    task = subject.task
    network = network.float().train()
    torch.manual_seed(recipe.seed)
    plan = Plan(
        epochs=recipe.epochs,
        batch_size=subject.config.loop.batch_size,
        learning_rate=recipe.learning_rate,
        seed=recipe.seed,
    )
    train, held_out = (part_of(task, part, teacher) for part in (task.split.train, task.split.validation))
    training = new_training(network, train, held_out, plan, loss_sum=loss_for(task, teacher, recipe.teacher_share))
    if teacher is None:
        training.batch_weight = batch_weight_of(task.class_weights)
    if masks is not None:
        keep_masked(training, network, masks)
    fit(training)
    return network.eval()


def keep_masked(training: Training, network: nn.Module, masks: Mapping[str, Tensor]) -> None:
    """Set weights outside `masks` to 0 now and after each step of the optimizer.

    Args:
        network: network whose weights are held.
        masks: 1 for each weight that is kept and 0 for others, by the weight's name.
    """
    weights = dict(network.named_parameters())

    @torch.no_grad()
    def apply(*_: object) -> None:
        for name, mask in masks.items():
            weights[name].mul_(mask)

    apply()
    training.optimizer.register_step_post_hook(apply)


@torch.no_grad()
def part_of(task: Task, rows: Dataset, teacher: nn.Module | None) -> TensorPartition:
    """Return a part's inputs, and its targets followed by the teacher's outputs: (rows, 1 + outputs).

    Args:
        teacher: network whose outputs are appended; None for the targets alone.
    """
    inputs, targets = tensor(task.inputs, rows.features), tensor(task.targets, rows.target).unsqueeze(1)
    answers = [] if teacher is None else [teacher.eval()(inputs)]
    return TensorPartition(inputs=inputs, targets=torch.cat([targets, *answers], dim=1))


def loss_for(task: Task, teacher: nn.Module | None, share: float) -> LossSum:
    """Return the loss against the truth, and with a teacher, `share` of it against what the teacher answers.

    Args:
        teacher: network whose outputs are imitated; None for the targets alone.
        share: weight of the imitation, 0 to 1; the rest is that of the targets.
    """
    truth = loss_sum_of(CROSS_ENTROPY if task.labels else SQUARED_ERROR, task.class_weights)
    if teacher is None:
        return truth

    def mixed(outputs: Tensor, targets: Tensor) -> Tensor:
        true, answers = targets[:, :1], targets[:, 1:]
        return (1 - share) * truth(outputs, true) + share * imitation(outputs, answers, classes=bool(task.labels))

    return mixed


def imitation(outputs: Tensor, answers: Tensor, *, classes: bool) -> Tensor:
    """Return how far outputs are from the teacher's, summed over rows: squared error, or KL of softened chances.

    Args:
        outputs: shape (rows, outputs).
        answers: the teacher's outputs, shape (rows, outputs).
        classes: outputs are logits of classes.
    """
    if not classes:
        return nn.functional.mse_loss(outputs, answers, reduction="sum")
    student = (outputs / TEMPERATURE).log_softmax(dim=1)
    teacher = (answers / TEMPERATURE).log_softmax(dim=1)
    divergence = nn.functional.kl_div(student, teacher, reduction="sum", log_target=True)
    return divergence * TEMPERATURE**2  # so that its gradient keeps its size (Hinton 2015, section 2)
