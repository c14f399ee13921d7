"""Options as people type them: with dashes, with underscores, and those that only the trainer knows."""

from invoke.context import Context

from rocmatrix import job
from rocmatrix.tasks import collection, flags, jobs


def test_every_option_of_the_trainer_can_be_typed_with_dashes_and_underscores():
    names = {name for argument in jobs.train.get_arguments() for name in argument.names}
    assert {"batch-size", "batch_size", "in", "dry-run", "dry_run", "cell"} <= names


def test_what_only_the_host_knows_cannot_be_typed():
    typed = {option["name"] for option in flags.trainer_options("train")}
    assert typed
    assert not typed & {"cell", "cell_absent", "forced", "image", "commit"}


def test_an_option_that_may_be_repeated_arrives_as_a_list(monkeypatch):
    (told,) = [argument for argument in jobs.train.get_arguments() if "set" in argument.names]
    assert told.kind is list
    seen = []
    monkeypatch.setattr("rocmatrix.commands.jobs.train", seen.append)
    jobs.train(Context(), set=["train.epochs=3", "train.seed=1"])
    assert job.flags(seen[0].options) == ["--set=train.epochs=3", "--set=train.seed=1"]


def test_the_trainers_options_arrive_together_and_the_others_by_name(monkeypatch):
    seen = []
    monkeypatch.setattr("rocmatrix.commands.jobs.train", seen.append)
    jobs.train(Context(), gpu="cpu", epochs="3", batch_size="7", **{"in": "native"})
    (job,) = seen
    assert (job.request.gpu, job.where) == ("cpu", "native")
    assert job.options == {"epochs": "3", "batch_size": "7"}


def test_every_module_of_tasks_is_in_the_collection():
    modules = {task.body.__module__ for task in collection().tasks.values()}
    files = {f"rocmatrix.tasks.{path.stem}" for path in flags.TRAINER_OPTIONS.parent.glob("tasks/*.py")}
    assert modules == files - {"rocmatrix.tasks.__init__", "rocmatrix.tasks.flags"}


def test_probes_are_listed_without_an_engine_or_a_card(monkeypatch):
    listed = []
    monkeypatch.setattr("rocmatrix.commands.jobs.list_probes", listed.append)
    monkeypatch.setattr("rocmatrix.commands.jobs.smoke", lambda wanted: listed.append("ran"))
    jobs.smoke(Context(), **{"list": True, "probe": ["blas"]})
    assert listed == [["blas"]]
