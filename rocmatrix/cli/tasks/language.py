"""The tasks for language models: what is done with a trained one, and a page on the data before training."""

from invoke.context import Context

from rocmatrix.cli.options.common import DryRun
from rocmatrix.cli.tasks.flags import FlagTask, TrainerOptions, TrainerTask, command


def _language(name: str, summary: str) -> FlagTask:
    """Return the task of a trainer's command, under the same name."""

    def body(c: Context, asked: DryRun, options: TrainerOptions) -> None:
        from rocmatrix.cli.commands import language

        language.run(name, options, dry_run=asked.dry_run)

    body.__name__, body.__doc__ = name.replace("-", "_"), summary
    return command(DryRun, klass=TrainerTask)(body)


generate = _language(
    "generate", "Continue a prompt with a language model; with an adapter, the base model's text stands next to it."
)
chat = _language("chat", "Answer each line of the standard input with a language model, until Ctrl-D.")
evaluate = _language(
    "evaluate",
    "Measure loss, perplexity and bits per byte of a language model on a text: of an adapter before and after.",
)
merge = _language("merge", "Write an adapter and its base model as one model folder, with the logits compared.")
gguf = _language(
    "gguf",
    "Write a language model as a GGUF file for llama.cpp, read again and compared. Needs the package gguf.",
)
show_data = _language(
    "show-data",
    "Write a page that colours the trained tokens of rows for a language model, with every row that is refused.",
)
plan = _language(
    "plan", "Print what training a language model takes on a card that need not be there: memory by part, what fits."
)
