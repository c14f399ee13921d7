"""Options as people type them: with dashes, with underscores, and those that only the trainer knows."""

from dataclasses import fields
from pathlib import Path

import pytest
from invoke.context import Context
from invoke.parser.parser import Parser

from rocmatrix.cli.options.common import Job
from rocmatrix.cli.program import UnderscoreParser
from rocmatrix.cli.tasks import cluster, collection, features, flags, jobs
from rocmatrix.jobs import job
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import BENCH, PROGRAMS
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.option import options_of


def test_trainer_options_can_be_typed_with_dashes_and_underscores():
    names = {name for argument in jobs.train.get_arguments() for name in argument.names}
    assert {"batch-size", "in", "dry-run", "cell"} <= names


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        (["train", "--batch_size=3"], ["train", "--batch-size=3"]),
        (["train", "--dry_run", "--batch-size", "3"], ["train", "--dry-run", "--batch-size", "3"]),
        (["train", "--no_such=a_b"], ["train", "--no_such=a_b"]),
        (["train", "--run=a_b"], ["train", "--run=a_b"]),
        (["run", "--", "--dry_run"], ["run", "--", "--dry_run"]),
    ],
)
def test_underscores_of_a_known_flag_become_dashes(typed, read, monkeypatch):
    seen = []
    monkeypatch.setattr(Parser, "parse_argv", lambda _, argv: seen.append(argv))
    UnderscoreParser(contexts=collection().to_contexts()).parse_argv(typed)
    assert seen == [read]


def test_option_that_the_host_sets_cannot_be_typed():
    typed = {option["name"] for option in flags.trainer_options("train")}
    assert typed
    assert not typed & {"cell", "cell_absent", "forced", "image", "commit"}


def test_option_that_may_be_repeated_arrives_as_a_list(monkeypatch):
    (told,) = [argument for argument in jobs.train.get_arguments() if "set" in argument.names]
    assert told.kind is list
    seen = []
    monkeypatch.setattr("rocmatrix.cli.commands.jobs.train", seen.append)
    jobs.train(Context(), set=["train.epochs=3", "train.seed=1"])
    assert job.flags(seen[0].options) == ["--set=train.epochs=3", "--set=train.seed=1"]


def test_trainers_options_arrive_together_and_the_others_by_name(monkeypatch):
    seen = []
    monkeypatch.setattr("rocmatrix.cli.commands.jobs.train", seen.append)
    jobs.train(Context(), gpu="cpu", epochs="3", batch_size="7", **{"in": "native"})
    (job,) = seen
    assert (job.request.gpu, job.where) == ("cpu", "native")
    assert job.options == {"epochs": "3", "batch_size": "7"}


def test_task_modules_are_all_in_the_collection():
    modules = {task.body.__module__ for task in collection().tasks.values()}
    files = {f"rocmatrix.cli.tasks.{path.stem}" for path in Path(flags.__file__).parent.glob("*.py")}
    assert modules == files - {f"rocmatrix.cli.tasks.{name}" for name in ("__init__", "flags", "groups")}


def test_probes_are_listed_without_an_engine_or_a_card(monkeypatch):
    listed = []
    monkeypatch.setattr("rocmatrix.cli.commands.jobs.list_probes", listed.append)
    monkeypatch.setattr("rocmatrix.cli.commands.jobs.smoke", lambda wanted: listed.append("ran"))
    jobs.smoke(Context(), **{"list": True, "probe": ["blas"]})
    assert listed == [["blas"]]


JOB_TASKS = [task for task in collection().tasks.values() if isinstance(task, flags.JobTask)]


def test_job_options_are_fields_of_the_request():
    taken = {field.name for field in fields(JobRequest)} - {"program", "options", "request", "forced"}
    axes = {field.name for field in fields(Request)}
    assert set(options_of(Job)) == taken | axes


@pytest.mark.parametrize("task", JOB_TASKS, ids=lambda task: task.name)
def test_job_options_can_be_typed_and_have_help(task):
    told = {name: argument.help for argument in task.get_arguments() for name in argument.names}
    assert all(told[each.typed.replace("_", "-")] for each in task.own.values())


@pytest.mark.parametrize(
    ("task", "command"),
    [
        (jobs.train, "jobs.train"),
        (jobs.smoke, "jobs.smoke"),
        (jobs.bench, "bench.bench"),
        (features.features, "features.compute"),
        (cluster.submit, "cluster.submit"),
    ],
)
def test_job_without_options_is_the_same_for_every_task(task, command, monkeypatch):
    seen = []
    monkeypatch.setattr(f"rocmatrix.cli.commands.{command}", lambda job, **others: seen.append(job))
    task(Context())
    (asked,) = seen
    program = "train" if task is cluster.submit else task.name
    assert asked == JobRequest(program=PROGRAMS[program], request=Request(), where="auto", options=asked.options)
    assert not any(asked.options.values())


def test_job_takes_what_was_typed_and_the_task_keeps_its_own(monkeypatch):
    seen = []
    monkeypatch.setattr("rocmatrix.cli.commands.bench.bench", lambda job, as_json: seen.append((job, as_json)))
    typed = {"in": "container", "base": "b", "cards": "0,1", "expandable_segments": True, "force": True}
    jobs.bench(Context(), rocm="6.3", wheelhouse="w", dry_run=True, json=True, seconds="2", **typed)
    assert seen == [
        (
            JobRequest(
                program=BENCH,
                request=Request(rocm="6.3"),
                where="container",
                options={"seconds": "2"},
                base="b",
                dry_run=True,
                force=True,
                wheelhouse="w",
                cards=(0, 1),
                expandable_segments=True,
            ),
            True,
        )
    ]


def test_cards_of_a_node_are_a_number_next_to_the_job(monkeypatch):
    seen = []
    monkeypatch.setattr("rocmatrix.cli.commands.cluster.submit", lambda job, **others: seen.append((job, others)))
    cluster.submit(Context(), cards=4, epochs="3")
    ((asked, others),) = seen
    assert (asked.cards, asked.options, others["nodes"].cards) == ((), {"epochs": "3"}, 4)


def test_list_of_features_is_the_trainers_own(monkeypatch):
    shown = []
    monkeypatch.setattr("rocmatrix.cli.commands.features.show", lambda: shown.append(True))
    features.features(Context(), **{"list": True})
    assert shown == [True]
