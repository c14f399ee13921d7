"""Commands as data: what is typed, what a body is given, and the options that only the trainer knows."""

from dataclasses import fields
from pathlib import Path

import pytest

from rocmatrix.cli import commands
from rocmatrix.cli.options.command import command, known, trainer_options
from rocmatrix.cli.options.common import Job, Kept
from rocmatrix.jobs import programs
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import BENCH, PROGRAMS
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.option import options_of

WITHOUT_COMMAND = {"bundle", "common"}  # what others of the room call
JOBS = [each for each in known().values() if each.job]


def flags_of(name):
    return {flag.name: flag for flag in known()[name].flags}


def test_topics_define_a_command_each():
    topics = {path.stem for path in Path(commands.__path__[0]).glob("*.py")} - {"__init__"} - WITHOUT_COMMAND
    defined = {getattr(each.body, "__module__", "") for each in known().values()}
    assert defined - {"functools"} == {f"{commands.__name__}.{name}" for name in topics - {"language"}}
    assert {"chat", "gguf"} <= set(known())  # of `language`


def test_command_with_a_taken_name_is_refused():
    train = known()["train"]
    with pytest.raises(ValueError, match=r"train is the command of rocmatrix\.cli\.commands\.jobs"):
        command(Kept, name="train", about="another")(train.body)
    assert known()["train"] is train


def test_names_of_a_commands_flags_are_typed_once():
    for each in known().values():
        ways = [way for flag in each.flags for way in (flag.name, flag.short) if way]
        assert len(ways) == len(set(ways)), each.name


def test_options_of_the_trainer_are_flags_with_dashes():
    assert {"batch-size", "in", "dry-run", "cell"} <= set(flags_of("train"))


def test_facts_of_the_host_are_no_flags():
    typed = {option["name"] for option in trainer_options("train")}
    assert typed
    assert not typed & {"cell", "cell_absent", "forced", "image", "commit"}


def test_option_that_may_be_repeated_arrives_as_a_list():
    assert flags_of("train")["set"].kind is list
    job_request, _ = known()["train"].arguments({"set": ["train.epochs=3", "train.seed=1"]})
    assert programs.flags(job_request.options) == ["--set=train.epochs=3", "--set=train.seed=1"]


def test_trainers_options_arrive_together_and_the_others_by_name():
    job_request, _ = known()["train"].arguments({"gpu": "cpu", "epochs": "3", "batch_size": "7", "in": "native"})
    assert (job_request.request.gpu, job_request.where) == ("cpu", "native")
    assert job_request.options == {"epochs": "3", "batch_size": "7"}


def test_probes_are_listed_without_an_engine_or_a_card(monkeypatch):
    listed = []
    monkeypatch.setattr("rocmatrix.cli.commands.jobs.list_probes", lambda names, as_json: listed.append(names))
    monkeypatch.setattr("rocmatrix.cli.commands.jobs.run_and_record", lambda job_request: listed.append("ran"))
    known()["smoke"].run({"list": True, "probe": ["blas"]})
    assert listed == [["blas"]]


def test_smoke_hands_probes_and_limit_to_the_trainer(monkeypatch):
    seen = []
    monkeypatch.setattr("rocmatrix.cli.commands.jobs.run_and_record", seen.append)
    known()["smoke"].run({"list": False, "probe": ["blas"], "timeout": "9"})
    assert [each.options for each in seen] == [{"probe": ["blas"], "timeout": "9"}]


def test_evidence_that_is_named_is_used(monkeypatch, tmp_path):
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", "another")
    monkeypatch.setattr("rocmatrix.cli.commands.jobs.run_and_record", lambda job_request: None)
    known()["smoke"].run({"evidence": str(tmp_path / "e.db")})
    from rocmatrix.evidence import recorder

    assert recorder.evidence_file() == tmp_path / "e.db"


def test_options_of_a_job_are_fields_of_its_request():
    taken = {field.name for field in fields(JobRequest)} - {"program", "options", "request", "forced"}
    axes = {field.name for field in fields(Request)} - {"rocm_release"}  # read from --rocm
    assert set(options_of(Job)) == taken | axes | {"with_requirements"}  # which becomes a word of the companions


@pytest.mark.parametrize("each", JOBS, ids=lambda each: each.name)
def test_options_of_a_job_are_flags_with_a_help_text(each):
    texts = {flag.name: flag.help for flag in each.flags}
    assert all(texts[option.typed.replace("_", "-")] for option in each.own.values())


@pytest.mark.parametrize("name", ["train", "smoke", "bench", "features", "submit"])
def test_job_without_options_is_the_same_for_every_command(name):
    job_request, _ = known()[name].arguments({})
    program = PROGRAMS["train" if name == "submit" else name]
    assert job_request == JobRequest(program=program, request=Request(), where="auto", options={})


def test_job_takes_what_was_typed_and_the_command_keeps_its_own():
    typed = {"in": "container", "base": "b", "cards": "0,1", "expandable_segments": True, "force": True}
    typed |= {"rocm": "6.3", "wheelhouse": "w", "dry_run": True, "json": True, "seconds": "2"}
    job_request, options = known()["bench"].arguments(typed)
    assert options.as_json
    assert job_request == JobRequest(
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
    )


def test_cards_of_a_node_are_a_number_next_to_the_job():
    job_request, options = known()["submit"].arguments({"cards": 4, "epochs": "3"})
    assert (job_request.cards, job_request.options, options.cards) == ((), {"epochs": "3"}, 4)


def test_list_of_features_is_the_trainers_own(monkeypatch):
    shown = []
    monkeypatch.setattr("rocmatrix.cli.commands.features.show", lambda: shown.append(True))
    known()["features"].run({"list": True})
    assert shown == [True]
