"""The tasks for language models: what is done with a trained one, and a page on the data before training."""

from typing import Any

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import TrainerTask

DRY_RUN = {"dry_run": "print exactly what would run, and run nothing"}


@task(klass=TrainerTask, auto_shortflags=False, help=DRY_RUN)
def generate(c: Context, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Continue a prompt with a language model; with an adapter, the base model's text stands next to it."""
    from rocmatrix.cli.commands import language

    language.run("generate", options or {}, dry_run=dry_run)


@task(klass=TrainerTask, auto_shortflags=False, help=DRY_RUN)
def chat(c: Context, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Answer each line of the standard input with a language model, until Ctrl-D."""
    from rocmatrix.cli.commands import language

    language.run("chat", options or {}, dry_run=dry_run)


@task(klass=TrainerTask, auto_shortflags=False, help=DRY_RUN)
def evaluate(c: Context, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Measure loss, perplexity and bits per byte of a language model on a text: of an adapter before and after."""
    from rocmatrix.cli.commands import language

    language.run("evaluate", options or {}, dry_run=dry_run)


@task(klass=TrainerTask, auto_shortflags=False, help=DRY_RUN)
def merge(c: Context, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Write an adapter and its base model as one model folder, with the logits compared."""
    from rocmatrix.cli.commands import language

    language.run("merge", options or {}, dry_run=dry_run)


@task(klass=TrainerTask, auto_shortflags=False, help=DRY_RUN)
def gguf(c: Context, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Write a language model as a GGUF file for llama.cpp, read again and compared. Needs the package gguf."""
    from rocmatrix.cli.commands import language

    language.run("gguf", options or {}, dry_run=dry_run)


@task(klass=TrainerTask, auto_shortflags=False, help=DRY_RUN)
def show_data(c: Context, dry_run: bool = False, options: dict[str, Any] | None = None) -> None:
    """Write a page that colours the trained tokens of rows for a language model, with every row that is refused."""
    from rocmatrix.cli.commands import language

    language.run("show-data", options or {}, dry_run=dry_run)
