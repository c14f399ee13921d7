"""Language models as learning tasks: from scratch, tuned on conversations, or by preferences."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.sections.decoder import DecoderConfig
from trainer.config.sections.optimizer import LoopConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.data.loading.batch import call
from trainer.data.loading.sampler import steps_of
from trainer.data.tokens.chat_template import ChatTemplate
from trainer.data.tokens.load import LanguageData, load
from trainer.data.tokens.partition import JudgedPartition, PackedPartition, PairPartition, WindowRows
from trainer.data.tokens.row import sequences_of
from trainer.data.tokens.tokenizer import ByteTokenizer, Tokenizer
from trainer.models.adapters import by_peft, peft_format
from trainer.models.adapters.adalora import Penalised
from trainer.models.adapters.first_step import require_step
from trainer.models.pretrained import folder as pretrained
from trainer.models.pretrained.own_class import is_own_class
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import say
from trainer.runtime.paths import SAMPLE
from trainer.tasks.language.artifacts import companions, folder_bytes, generation_of, text_bytes
from trainer.tasks.language.balance import state_balance
from trainer.tasks.language.inputs import template_of, tokenizer_of
from trainer.tasks.language.network import (
    build,
    by_own_class,
    load_for_peft,
    load_weights,
    lora_of,
    new_config,
    peft_config_of,
    planned_adapter,
    pretrained_vocabulary,
)
from trainer.tasks.language.reference import with_reference
from trainer.tasks.language.tuning import LanguageTuner
from trainer.tasks.task import RUN, BatchWeight, Evaluation, LossSum, NetworkSpec, Partitions, Placement, Trained

PREFERENCES = ("dpo", "kto")  # their reference is the model with its adapter off


@dataclass(frozen=True, kw_only=True)
class LanguageTask:
    """A language model to train on rows of tokens; see `LearningTask` for the methods.

    peft: of --adapter peft, see `network.peft_config_of`.
    """

    config: TokensConfig
    decoder: DecoderConfig
    data: LanguageData
    tokenizer: Tokenizer
    template: ChatTemplate | None
    seed: int = 0
    peft: Mapping[str, Any] | None = None
    kind: str = "language"

    @property
    def data_name(self) -> str:
        """Name of the text or of the rows' file."""
        return self.config.data.name

    @property
    def data_sha256(self) -> str:
        """Hash of the file, the tokenizer and the template: all that decides the tokens."""
        import hashlib

        parts = (self.data.sha256, self.tokenizer.sha256, self.template.sha256 if self.template else "")
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    @property
    def train_rows(self) -> int:
        """Number of sequences to train on."""
        return len(self.data.train)

    def defaults(self, loop: LoopConfig, given: Collection[str]) -> dict[str, Any]:
        """Return nothing: those of language models do not depend on the data."""
        return {}

    def network(self) -> NetworkSpec:
        """Return the decoder that the settings describe, new or from a folder, with its adapter."""
        config, adapter = self.decoder, self.decoder.adapter
        raw = (
            pretrained.read_config(config.model)
            if config.model
            else new_config(config, self.config.sequence, self.tokenizer)
        )
        pretrained_vocabulary(raw, self.tokenizer)
        if self.data.method in PREFERENCES and adapter.adapter == "none":
            what = f"--method {self.data.method} without --adapter: the reference is the model with its adapter off"
            raise TrainerError("RM500", what=what, next="Give --adapter lora or qlora.")
        if adapter.adapter != "none" and "mamba" in str(raw.get("model_type")):
            what = (
                f"--adapter {adapter.adapter} on {raw['model_type']}: its kernels read weights past the adapted layers"
            )
            raise TrainerError("RM713", what=what, next="Train all weights, without --adapter.")
        own_class = by_own_class(raw, config)  # whose rows are filled up, and positions may be counted to their end
        longest = self.longest if own_class else self.longest_document
        own: dict[str, Any] = {"peft": self.peft, "longest": longest}
        chosen = {"kind": "decoder", "config": raw, "adapter": adapter.adapter, "method": self.data.method}
        return NetworkSpec(
            description=chosen | self.described_adapter(),
            build=partial(build, raw, config, self.data.method, seed=self.seed, **own),
            load=self.loader() if config.model else None,
            tune=LanguageTuner(requested=config.fast, tokens=self.config.sequence, sequences=self.sequences),
            remedy=lambda most: f"a decoder of at most {most:,} parameters would fit",
            trial=self.trial(),
            planned=None if is_own_class(raw) else self.planned(raw),
        )

    def trial(self) -> Any:
        """Return what refuses a method of peft that cannot take a step, None for other networks."""
        return None if self.peft is None else partial(require_step, kind=str(self.peft.get("peft_type")).upper())

    def described_adapter(self) -> dict[str, Any]:
        """Return the adapter's part of the description of the network."""
        kind = self.decoder.adapter.adapter
        if self.peft is not None:
            return {"peft": dict(self.peft)}
        return {} if kind == "none" else {"lora": vars(lora_of(self.decoder.adapter))}

    def loader(self) -> Any:
        """Return what puts the folder's weights into the network."""
        assert self.decoder.model is not None
        if self.peft is not None:
            return partial(load_for_peft, folder=self.decoder.model, peft=self.peft, seed=self.seed)
        return partial(load_weights, folder=self.decoder.model)

    def planned(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a plan of memory takes of the network, see `NetworkSpec.planned`."""
        return {
            **planned_adapter(self.decoder),
            **{"raw": raw, "method": self.data.method, "peft": self.peft},
            "sequence": self.longest,
            "group": self.config.kto_group,
            "packed": isinstance(self.data.train, PackedPartition),
        }

    @property
    def sequences(self) -> int:
        """Sequences that are computed at a time for one row."""
        return sequences_of(self.data.method, self.config.kto_group)

    @property
    def longest(self) -> int:
        """Tokens of a row as they are computed: preferences are filled up to the longest of them alone."""
        rows = self.data.train
        return rows.tokens.shape[-1] if isinstance(rows, PairPartition | JudgedPartition) else self.config.sequence

    @property
    def longest_document(self) -> int:
        """Tokens of the longest document, from its beginning: of several in a sequence, each has its own positions."""
        rows = self.data.train
        if isinstance(rows, PackedPartition):
            both = (rows, self.data.validation)
            return max(int(each.packed.positions.max()) + 1 for each in both if isinstance(each, PackedPartition))
        return self.longest

    def partitions(self, placement: Placement) -> Partitions:
        """Return the rows; they are on the host, a text's windows are mapped."""
        reason = "windows of a stream" if isinstance(self.data.train, WindowRows) else "rows of tokens are small"
        name = "mapped" if self.data.facts.get("shards", 1) > 1 else "host"
        return Partitions(
            train=self.data.train, validation=self.data.validation, feed=name, reason=reason, workers=placement.workers
        )

    def precomputed(self, rows: Partitions, evaluation: Evaluation) -> Partitions:
        """Return preferences with the reference's log-probabilities where these are cached, other rows as they are."""
        if self.decoder.reference != "cached" or self.data.method not in PREFERENCES:
            return rows
        parts = {name: with_reference(getattr(rows, name), evaluation) for name in ("train", "validation")}
        return replace(rows, **parts)

    def loss(self) -> LossSum:
        """Return the model's own output: it forms the sum of the losses itself, in chunks."""
        return sum_of

    def batch_weight(self) -> BatchWeight | None:
        """Return the sum of the labels' weights of a batch, or of its pairs."""
        return total_weight

    @torch.no_grad()
    def evaluate(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return the mean loss of the held-out rows, and for texts perplexity and bits per byte.

        A loss that training measured is not computed again: a pass over the held-out rows took a tenth of a short run.
        """
        rows = self.data.validation
        share = range(len(rows))[evaluation.rank_slice(len(rows))]
        total = torch.zeros(2, dtype=torch.float64)
        for begin in range(0, len(share), evaluation.rows):
            numbers = torch.tensor(share[begin : begin + evaluation.rows])
            inputs, weights = rows.rows(numbers, evaluation.device)
            total[1] += weights.sum().double().cpu()
            if evaluation.measured is None:
                with evaluation.autocast():
                    total[0] += call(evaluation.forward, inputs).double().cpu()
        loss_sum, weight = evaluation.sum(total.to(evaluation.device)).tolist()
        if evaluation.measured is not None:
            loss_sum = evaluation.measured * weight
        return {"validation": self.figures(loss_sum, weight)}

    def figures(self, loss_sum: float, weight: float) -> dict[str, Any]:
        """Return loss and what follows from it; perplexity of overflow is left out."""
        loss = loss_sum / weight if weight else math.nan
        figures: dict[str, Any] = {"rows": len(self.data.validation), "loss": loss}
        if self.data.method in PREFERENCES:
            return figures
        figures |= {"tokens": weight, "perplexity": math.exp(loss) if loss < 700 else math.inf}
        if isinstance(self.data.validation, WindowRows):
            figures["bits_per_byte"] = loss_sum / math.log(2) / text_bytes(self.data.validation, self.tokenizer)
        return figures

    def describe(self, network: NetworkSpec) -> dict[str, Any]:
        """Return the entries of metadata.json."""
        data = {"name": self.data_name, "sha256": self.data.sha256, "source": None, **self.data.facts}
        template = (
            {"source": Path(self.template.source).name, "sha256": self.template.sha256} if self.template else None
        )
        language = {
            "method": self.data.method,
            "sequence": self.config.sequence,
            "tokenizer": {"name": self.tokenizer.name, "sha256": self.tokenizer.sha256, "size": self.tokenizer.size},
            "chat_template": template,
            "train_sequences": len(self.data.train),
            "validation_sequences": len(self.data.validation),
        }
        return {"task": "language", "data": data, "model": network.description, "language": language}

    def replay_settings(self) -> dict[str, Any]:
        """Return nothing: the description holds all."""
        return {}

    def files(self, model: nn.Module, record: dict[str, Any], formats: Sequence[str]) -> dict[str, bytes]:
        """Return the model in Hugging Face layout, or the adapter in peft's, with tokenizer files.

        Args:
            model: trained network on the CPU.
            record: content of metadata.json.
            formats: values of `--export`.
        """
        config, adapter = self.decoder, self.decoder.adapter
        decoder: Any = model.decoder
        raw = record["model"]["config"]
        if adapter.adapter == "none":
            made = pretrained.Pretrained(
                model=decoder, raw=raw, source=config.model, generation=generation_of(self.tokenizer)
            )
            return self.own_tokenizer() | folder_bytes(made)
        if adapter.adapter == "peft":
            with tempfile.TemporaryDirectory() as temporary:
                return by_peft.files(decoder, Path(temporary), base=str(config.model)) | companions(config.model)
        files = peft_format.files(
            decoder.network, lora_of(adapter), family=str(raw["model_type"]), base=str(config.model)
        )
        return files | companions(config.model) | self.own_tokenizer()

    def own_tokenizer(self) -> dict[str, bytes]:
        """Return the tokenizer's files where no folder brings them."""
        return (
            self.tokenizer.files() if self.decoder.model is None and isinstance(self.tokenizer, ByteTokenizer) else {}
        )

    def summary(self, record: Mapping[str, Any], trained: Trained) -> dict[str, str]:
        """Return the lines on data and loss."""
        figures, language = record["metrics"]["validation"], record["language"]
        tokens = trained.rows * self.longest * self.sequences
        loss = f"validation {figures['loss']:.4f}"
        if figures.get("perplexity"):
            loss += f", perplexity {figures['perplexity']:.2f}"
        if figures.get("bits_per_byte"):
            loss += f", {figures['bits_per_byte']:.3f} bits per byte"
        rows = f"{language['train_sequences']:,} train, {language['validation_sequences']:,} validation"
        kinds = {"dpo": "pairs", "kto": f"groups of {self.config.kto_group} answers"}
        kind = kinds.get(self.data.method, f"sequences of {language['sequence']}")
        return {
            "data": f"{record['data']['name']}, {self.data.method}; {kind}: {rows}",
            "loss": loss,
            "speed": f"{tokens / trained.seconds:,.0f} tokens/s, {trained.seconds:.1f} s",
        }

    def next_commands(self, record: Mapping[str, Any]) -> list[str]:
        """Return how to use the model, then how to measure and merge an adapter, or tune and export a whole model."""
        converses = record["language"]["method"] != "pretrain"
        use = f"./invokew chat --model {RUN}" if converses else f"./invokew generate --model {RUN} --prompt 'Once'"
        if record["model"]["adapter"] == "none":
            tune = f"./invokew train --task lm --model {RUN} --adapter lora --data CHATS.jsonl"
            return [use, tune, f"./invokew gguf --model {RUN} --output model.gguf"]
        measure = f"./invokew evaluate --model {RUN} --data TEXT"
        return [use, measure, f"./invokew merge --model {RUN} --output MERGED"]


def sum_of(outputs: Tensor | Penalised, targets: Tensor) -> Tensor:
    """Return the loss that the model has summed; `targets` are only the labels' weight."""
    return outputs.loss + targets.sum() * outputs.penalty if isinstance(outputs, Penalised) else outputs


def total_weight(targets: Tensor) -> Tensor:
    """Return what a batch's labels weigh."""
    return targets.sum()


def language_task(config: TokensConfig, decoder: DecoderConfig, *, folder: Path, loop: LoopConfig) -> LanguageTask:
    """Read tokenizer, template and rows, and return the task.

    Args:
        config: which rows.
        decoder: which network; its folder brings tokenizer and template.
        folder: where shards of a large text are written.
        loop: its seed draws the rows that are held out, and the adapter's first weights.

    Raises:
        TrainerError: RM500 without --data, RM700 to RM717.
    """
    if config.data == SAMPLE:
        raise TrainerError("RM500", what="--task lm needs --data: a text, or JSONL of texts, conversations or pairs")
    if decoder.model is None and decoder.adapter.adapter != "none":
        what = f"--adapter {decoder.adapter.adapter} without --model: the base of an adapter has to be there later, too"
        raise TrainerError("RM500", what=what, next="Give --model a folder, or train all weights without --adapter.")
    if decoder.model is not None and config.packing and by_own_class(pretrained.read_config(decoder.model), decoder):
        say("rows    one a sequence, not packed: the network is computed by transformers' own class")
        config = replace(config, packing=False)
    tokenizer = tokenizer_of(decoder.model)
    template = template_of(decoder.model, tokenizer)
    data = load(config.data, config, tokenizer, template, folder=folder, seed=loop.seed)
    if data.method == "kto":
        weights = {"good_weight": decoder.kto_good_weight, "bad_weight": decoder.kto_bad_weight}
        state_balance(data.facts["good"], data.facts["bad"], **weights)
    used = template if data.method != "pretrain" else None
    steps = steps_of(loop, len(data.train))
    peft = peft_config_of(decoder, steps=steps) if decoder.adapter.adapter == "peft" else None
    parts: dict[str, Any] = {"data": data, "tokenizer": tokenizer, "template": used, "peft": peft}
    return LanguageTask(config=config, decoder=decoder, seed=loop.seed, **parts)
