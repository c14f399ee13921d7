"""RM700 to RM729, RM736 to RM739: language models, their folders, tokenizers, texts and adapters."""

from __future__ import annotations

from trainer.runtime.codes.entry import CatalogEntry, entries

LANGUAGE_MODELS: tuple[CatalogEntry, ...] = entries(
    (
        "RM700",
        "The model folder is incomplete",
        "A model is read from a local folder in Hugging Face layout, and no hub is reached; a file is missing.",
        "Copy the named file into the folder, or give --model the folder that holds it.",
    ),
    (
        "RM701",
        "The model family is not supported",
        "config.json names a model_type that neither the built-in decoder nor the installed transformers supports.",
        "Give a model of a known family, or install a transformers version that supports it.",
    ),
    (
        "RM702",
        "A weight file is damaged",
        "A safetensors file is cut off, has an invalid header, holds other tensors than its index lists, or holds NaN.",
        "Copy the file again and compare its size and checksum with the source.",
    ),
    (
        "RM703",
        "The weights do not fit the configuration",
        "A tensor is missing, unknown, or has another shape than config.json implies.",
        "Use config.json and weights of one and the same model.",
    ),
    (
        "RM704",
        "Vocabulary mismatch",
        "The tokenizer gives token ids that the model's embedding does not have.",
        "Use the tokenizer files of the same model, or resize the embedding before training.",
    ),
    (
        "RM705",
        "The tokenizer cannot be used",
        "The folder has no tokenizer.json, the file is invalid, or the tokenizers package is not installed.",
        "Copy the model's own tokenizer.json into the folder; what was trained here has one there.",
    ),
    (
        "RM706",
        "The chat template cannot be used",
        "The model has no chat template, or the template fails on this conversation.",
        "Add chat_template.jinja to the model folder, or correct the conversation.",
    ),
    (
        "RM707",
        "The model configuration is not supported",
        "A value in config.json requires something that the built-in decoder does not implement.",
        "Use a model without it; the message names the value.",
    ),
    (
        "RM708",
        "A row of the data is invalid",
        "A line is no JSON, has unknown or missing fields, an unknown role, or roles in an invalid order.",
        "Correct or delete the named line; `train` can leave such rows out with --bad-rows drop.",
    ),
    (
        "RM709",
        "A row has no token to train on",
        "All labels are masked: the answer is empty, was cut off, or is beyond the sequence length.",
        "Remove the row; raise --sequence, or choose --bad-rows drop.",
    ),
    (
        "RM710",
        "The stop token carries no loss",
        "A model trained on such rows never learns to end its answer.",
        "Use a template that puts the end-of-turn token within the generation block, or choose --stop-token append.",
    ),
    (
        "RM711",
        "An answer is longer than the sequence",
        "The row does not fit into --sequence tokens, so its end, with the stop token, would be lost.",
        "Raise --sequence, or choose --too-long drop or --too-long cut.",
    ),
    (
        "RM712",
        "The adapter folder cannot be used",
        "adapter_config.json or adapter_model.safetensors is missing, damaged, or asks for an unsupported method.",
        "Correct what is named, or load the adapter with the peft that wrote it and save it again.",
    ),
    (
        "RM713",
        "The adapter does not fit the model",
        "The adapter names modules or shapes that the model does not have.",
        "Give the base model that the adapter was trained on, or correct --lora-targets.",
    ),
    (
        "RM714",
        "Too little text",
        "The text has fewer tokens than one training sequence and one validation sequence need.",
        "Give more text; where it is cut into rows of --sequence tokens, a lower --sequence makes more rows of it.",
    ),
    (
        "RM715",
        "A token file is damaged",
        "A shard of tokens is missing, cut off, or was made by another tokenizer.",
        "Delete the folder of tokens; it is made again from the text.",
    ),
    (
        "RM716",
        "A package is missing",
        "The requested feature needs a Python package that is not installed here; it is in no image's lock.",
        "Install it natively: .venv/bin/python -m pip install NAME, or activate an environment that has it and torch.",
    ),
    (
        "RM717",
        "The text cannot be read",
        "The file is empty, not UTF-8, or of a format that is not supported.",
        "Give UTF-8 text, or JSONL with the fields that the documentation names.",
    ),
    (
        "RM718",
        "The merged model differs from the adapter",
        "Logits of the merged weights and of base model with adapter differ by more than rounding explains.",
        "Use the adapter with its base (`generate --model ADAPTER`): the base's format is too narrow for the sum.",
    ),
    (
        "RM719",
        "The run is of a language model",
        "Forecasts, smaller networks and a run's page need rows with features and a target; this run has tokens.",
        "Use ./invokew generate, chat, evaluate, merge or gguf with the run's folder; losses are in its metrics.jsonl.",
    ),
    (
        "RM720",
        "The folder is no language model",
        "metadata.json names a run on bars or a table, which has neither a tokenizer nor a decoder.",
        "Use ./invokew predict, compress or report with this run, or give the folder of a language model.",
    ),
    (
        "RM721",
        "The recipe to convert cannot be read",
        "It must be a YAML file that maps keys to values, as torchtune's recipes are.",
        "Correct the file, or give another one.",
    ),
    (
        "RM722",
        "The recipe is of another kind of training",
        "Fine-tuning with and without adapters and DPO are converted; recipes of evaluation, generation, quantisation, "
        "distillation and reinforcement learning are not.",
        "Give a recipe that fine-tunes one model.",
    ),
    (
        "RM723",
        "A reference in the recipe leads nowhere",
        "A value names another key as ${key}, and that key is missing or refers back.",
        "Put the value in its place.",
    ),
    (
        "RM724",
        "The converted recipe would replace a file",
        "No file is overwritten.",
        "Give another --output.",
    ),
    (
        "RM736",
        "The model to plan for is not known",
        "A plan is made for a model folder, a config.json, or one of the shapes that come with the trainer.",
        "Give the folder that train would take, or one of the shapes named.",
    ),
    (
        "RM737",
        "The plan does not fit",
        "The step, run on tensors without data, takes more memory than the card has for tensors.",
        "Take what the message names: it was planned and fits.",
    ),
    (
        "RM738",
        "The card to plan for is not known",
        "The table of cards has no memory for this name, or the card was made with several sizes.",
        'Give the card\'s name as AMD writes it, with its size where asked for: --gpu "MI50 32 GB".',
    ),
)
