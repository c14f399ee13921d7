"""Language models as learning tasks: from scratch, tuned on conversations, or by preferences."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.config.train import TrainConfig
from trainer.data.loading.batch import call
from trainer.data.tokens.chat_template import CHATML, ChatTemplate, read_template
from trainer.data.tokens.load import LanguageData, load
from trainer.data.tokens.partition import WindowRows
from trainer.data.tokens.tokenizer import ByteTokenizer, Tokenizer, read_tokenizer
from trainer.models.adapters import peft_format
from trainer.models.adapters.lora import LoraConfig, add_lora, chosen_modules
from trainer.models.adapters.nf4 import NF4Linear, quantize_linear_layers
from trainer.models.decoder.model import Decoder
from trainer.models.language.model import LanguageModel, PreferenceModel
from trainer.models.pretrained import folder as pretrained
from trainer.models.pretrained.families import decoder_config
from trainer.runtime.errors import TrainerError
from trainer.runtime.paths import SAMPLE
from trainer.tasks.task import Evaluation, LossSum, NetworkSpec, Partitions, Placement, Trained, Weigh

HEAD_WIDTH = 32


@dataclass(frozen=True, kw_only=True)
class LanguageTask:
    """A language model to train on rows of tokens; see `LearningTask` for the methods."""

    config: TrainConfig
    data: LanguageData
    tokenizer: Tokenizer
    template: ChatTemplate | None
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

    def network(self, config: TrainConfig) -> NetworkSpec:
        """Return the decoder that the settings describe, new or from a folder, with its adapter."""
        raw = pretrained.read_config(config.model) if config.model else new_config(config, self.tokenizer)
        pretrained_vocabulary(raw, self.tokenizer)
        if self.data.method == "dpo" and config.adapter == "none":
            what = "--method dpo without --adapter: the reference is the model with its adapter off"
            raise TrainerError("RM500", what=what, next="Give --adapter lora or qlora.")
        chosen = {"kind": "decoder", "config": raw, "adapter": config.adapter, "method": self.data.method}
        return NetworkSpec(
            description=chosen | ({"lora": vars(lora_of(config))} if config.adapter != "none" else {}),
            build=partial(build, raw, config, self.data.method),
            load=partial(load_weights, folder=config.model) if config.model else None,
            remedy=lambda most: f"a decoder of at most {most:,} parameters would fit",
        )

    def partitions(self, placement: Placement) -> Partitions:
        """Return the rows; they are on the host, a text's windows are mapped."""
        reason = "windows of a stream" if isinstance(self.data.train, WindowRows) else "rows of tokens are small"
        name = "mapped" if self.data.facts.get("shards", 1) > 1 else "host"
        return Partitions(
            train=self.data.train, validation=self.data.validation, feed=name, reason=reason, workers=placement.workers
        )

    def loss(self) -> LossSum:
        """Return the model's own output: it forms the sum of the losses itself, in chunks."""
        return sum_of

    def weigh(self) -> Weigh | None:
        """Return the sum of the labels' weights of a batch, or of its pairs."""
        return total_weight

    @torch.no_grad()
    def evaluate(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return the mean loss of the held-out rows, and for texts perplexity and bits per byte."""
        rows = self.data.validation
        share = range(len(rows))[evaluation.share(len(rows))]
        total = torch.zeros(2, dtype=torch.float64)
        for begin in range(0, len(share), evaluation.rows):
            numbers = torch.tensor(share[begin : begin + evaluation.rows])
            inputs, weights = rows.rows(numbers, evaluation.device)
            with evaluation.autocast():
                loss = call(evaluation.forward, inputs)
            total += torch.stack([loss.double().cpu(), weights.sum().double().cpu()])
        loss_sum, weight = evaluation.sum(total.to(evaluation.device)).tolist()
        return {"validation": self.figures(loss_sum, weight)}

    def figures(self, loss_sum: float, weight: float) -> dict[str, Any]:
        """Return loss and what follows from it; perplexity of overflow is left out."""
        loss = loss_sum / weight if weight else math.nan
        figures: dict[str, Any] = {"rows": len(self.data.validation), "loss": loss}
        if self.data.method == "dpo":
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

    def files(self, model: nn.Module, config: TrainConfig, record: dict[str, Any]) -> dict[str, bytes]:
        """Return the model in Hugging Face layout, or the adapter in peft's, with tokenizer files and recipe."""
        from trainer.config.recipe import as_recipe

        decoder: Decoder = model.decoder  # type: ignore[assignment]
        raw = record["model"]["config"]
        files = {"recipe.yaml": as_recipe(config).encode()}
        if config.adapter == "none":
            made = pretrained.Pretrained(
                model=decoder, raw=raw, source=config.model, generation=generation_of(self.tokenizer)
            )
            return files | self.own_tokenizer(config) | folder_bytes(made)
        adapter = peft_format.files(decoder, lora_of(config), family=str(raw["model_type"]), base=str(config.model))
        return files | adapter | companions(config.model) | self.own_tokenizer(config)

    def own_tokenizer(self, config: TrainConfig) -> dict[str, bytes]:
        """Return the tokenizer's files where no folder brings them."""
        return self.tokenizer.files() if config.model is None and isinstance(self.tokenizer, ByteTokenizer) else {}

    def summary(self, record: Mapping[str, Any], trained: Trained) -> dict[str, str]:
        """Return the lines on data and loss."""
        figures, language = record["metrics"]["validation"], record["language"]
        tokens = trained.rows * language["sequence"]
        loss = f"validation {figures['loss']:.4f}"
        if figures.get("perplexity"):
            loss += f", perplexity {figures['perplexity']:.2f}"
        if figures.get("bits_per_byte"):
            loss += f", {figures['bits_per_byte']:.3f} bits per byte"
        rows = f"{language['train_sequences']:,} train, {language['validation_sequences']:,} validation"
        return {
            "data": f"{record['data']['name']}, {self.data.method}; sequences of {language['sequence']}: {rows}",
            "loss": loss,
            "speed": f"{tokens / trained.seconds:,.0f} tokens/s, {trained.seconds:.1f} s",
        }


def sum_of(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the loss that the model has summed; `targets` are only what labels weigh."""
    return outputs


def total_weight(targets: Tensor) -> Tensor:
    """Return what a batch's labels weigh."""
    return targets.sum()


def language_task(config: TrainConfig) -> LanguageTask:
    """Read tokenizer, template and rows, and return the task.

    Raises:
        TrainerError: RM500 without --data, RM700 to RM717.
    """
    if config.data == SAMPLE:
        raise TrainerError("RM500", what="--task lm needs --data: a text, or JSONL of texts, conversations or pairs")
    if config.model:
        pretrained.read_config(config.model)  # a missing folder is named before its tokenizer
    tokenizer: Tokenizer = read_tokenizer(config.model) if config.model else ByteTokenizer()
    template = template_of(config, tokenizer)
    data = load(config.data, config, tokenizer, template, folder=config.output, seed=config.seed)
    used = template if data.method != "pretrain" else None
    return LanguageTask(config=config, data=data, tokenizer=tokenizer, template=used)


def template_of(config: TrainConfig, tokenizer: Tokenizer) -> ChatTemplate | None:
    """Return the model's chat template, ChatML for a new model, None where the folder has none."""
    if config.model is None:
        return ChatTemplate(text=CHATML, source="ChatML, built in", special=tokenizer.special)
    try:
        return read_template(config.model, tokenizer.special)
    except TrainerError:
        return None  # texts and completions need none; the first conversation says what is missing


def new_config(config: TrainConfig, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return config.json of a new decoder: Llama's structure, tied embeddings, a vocabulary of full tiles."""
    width = config.decoder_width
    if width % HEAD_WIDTH:
        raise TrainerError("RM500", what=f"--decoder-width {width} is no multiple of {HEAD_WIDTH}")
    return {
        "model_type": "llama",
        "vocab_size": -(-tokenizer.size // 64) * 64,
        "hidden_size": width,
        "intermediate_size": -(-width * 8 // 3 // 64) * 64,
        "num_hidden_layers": config.decoder_layers,
        "num_attention_heads": width // HEAD_WIDTH,
        "num_key_value_heads": width // HEAD_WIDTH,
        "hidden_act": "silu",
        "max_position_embeddings": config.sequence,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "bos_token_id": None,
        "eos_token_id": list(tokenizer.stops),
        "pad_token_id": None,
    }


def pretrained_vocabulary(raw: Mapping[str, Any], tokenizer: Tokenizer) -> None:
    """See that every token has an embedding. Raises TrainerError RM704."""
    if tokenizer.size > int(raw.get("vocab_size", 0)):
        what = f"the tokenizer has {tokenizer.size} tokens, the model's embedding {raw.get('vocab_size')}"
        raise TrainerError("RM704", what=what)


def lora_of(config: TrainConfig) -> LoraConfig:
    """Return the adapter that the settings describe."""
    return LoraConfig(
        rank=config.lora_rank,
        alpha=config.lora_alpha,
        dropout=config.lora_dropout,
        targets=config.lora_targets,
        rank_stabilized=config.lora_stabilized,
    )


def build(raw: Mapping[str, Any], config: TrainConfig, method: str) -> nn.Module:
    """Return the model with fresh weights from torch's generator."""
    decoder = Decoder(decoder_config(raw))
    decoder.initialize()
    if config.adapter == "qlora":
        quantize_linear_layers(decoder, chosen_modules(decoder, ("all",)))
    if config.adapter != "none":
        add_lora(decoder, lora_of(config), seed=config.seed)
    if method == "dpo":
        return PreferenceModel(decoder, beta=config.dpo_beta)
    return LanguageModel(decoder, drop_ignored=method == "sft")


@torch.no_grad()
def load_weights(model: nn.Module, *, folder: Path) -> None:
    """Put a folder's weights into the model; an adapted layer's go to its base, quantised where that is.

    Raises:
        TrainerError: RM700 to RM703.
    """
    decoder: Decoder = model.decoder  # type: ignore[assignment]
    for name, value in pretrained.read(folder).model.state_dict().items():
        module_name, _, kind = name.rpartition(".")
        module = decoder.get_submodule(module_name)
        base = getattr(module, "base", module)
        if isinstance(base, NF4Linear) and kind == "weight":
            base.load(value)
        else:
            getattr(base, kind).copy_(value)


def generation_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return generation_config.json of a new model."""
    return {"eos_token_id": list(tokenizer.stops), "do_sample": True, "temperature": 0.8, "top_k": 50}


def folder_bytes(made: pretrained.Pretrained) -> dict[str, bytes]:
    """Return the files of a model folder by name."""
    with tempfile.TemporaryDirectory() as temporary:
        names = pretrained.write(Path(temporary), made)
        return {name: (Path(temporary) / name).read_bytes() for name in names}


def companions(folder: Path | None) -> dict[str, bytes]:
    """Return the base model's tokenizer files, so that an adapter's folder can be chatted with."""
    if folder is None:
        return {}
    paths = [folder / name for name in pretrained.COMPANIONS]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def text_bytes(rows: WindowRows, tokenizer: Tokenizer) -> int:
    """Return how many bytes of text the labels of all rows stand for."""
    total = 0
    for number in range(len(rows)):
        ids = rows.window(number)[1:].tolist()
        total += len(tokenizer.decode(ids).encode())
    return max(total, 1)
