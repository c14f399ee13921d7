"""A bench shows its figures, adds a record with units, names its log, and raises no level."""

import json

import pytest

from rocmatrix.cli.commands import bench as command
from rocmatrix.cli.commands import common, jobs
from rocmatrix.evidence import recorder, store
from rocmatrix.evidence.level import cell_statuses, why_not
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import job
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import BENCH
from rocmatrix.jobs.runner import Finished, Job
from rocmatrix.matrix.resolver.resolve import Request
from tests.fixtures import cells, sysfs
from tests.fixtures.evidence import record

DEVICE = {"kind": "cpu", "name": "a CPU", "arch": "x86_64"}
NUMBERS = [
    {"name": "fp32 64x64x64", "value": 0.5, "unit": "TFLOP/s"},
    {"name": "fp32 64x64x64 spread", "value": 3.0, "unit": "%"},
]
MATMUL = {"event": "probe", "probe": "matmul", "status": "pass", "device": DEVICE, "numbers": NUMBERS}
HUNG = {"event": "probe", "probe": "bandwidth", "status": "timeout", "summary": "No verdict within 1 s.", "numbers": []}
UNFIT = {"event": "probe", "probe": "host_copy", "status": "not-applicable", "summary": "Nothing to copy to."}
END = {"event": "bench", "ran_on": "the CPU, a CPU (x86_64); no card was measured"}


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """Return a function that benches over a SIMULATED job, and the records it left."""
    path = tmp_path / "evidence.db"
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(path))
    monkeypatch.setattr(common, "known_matrix", lambda: cells.MATRIX)
    place = recorder.Place(cell=cells.CPU, hardware=read_hardware(sysfs.no_driver(tmp_path / "host")))
    monkeypatch.setattr(jobs, "prepared_job", lambda _: (Job(argv=[], environment={}, why="simulated"), place))

    def run(*events, status=0, as_json=False, **options):
        log = tmp_path / "bench.log"
        log.write_text("".join(json.dumps(event) + "\n" for event in events))
        monkeypatch.setattr(job, "run", lambda *_, **__: Finished(status=status, events=events, log=log))
        job_request = JobRequest(program=BENCH, request=Request(), where="native", options=options)
        try:
            command.bench(job_request, command.Bench(as_json=as_json))
        finally:
            run.records = store.read(path)

    return run


def test_figures_are_shown_with_units_and_spread(bench, capsys):
    bench(MATMUL, END)
    captured = capsys.readouterr()
    (row,) = [line.split() for line in captured.out.splitlines() if line.startswith("matmul")]
    assert row == ["matmul", "fp32", "64x64x64", "0.5", "TFLOP/s", "3", "%"]
    assert "no card was measured" in captured.err


def test_bench_adds_a_record_with_its_numbers_and_units(bench):
    bench(MATMUL, END)
    (made,) = bench.records
    assert (made.kind, made.passed, made.whole, made.hardware.device) == ("bench", True, True, "cpu")
    assert next((n.probe, n.name, n.value, n.unit) for n in made.numbers) == ("matmul", "fp32 64x64x64", 0.5, "TFLOP/s")
    assert made.log.endswith("whole log: bench.log")


def test_benchmark_that_hangs_costs_its_own_figures_and_names_the_log(bench, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        bench(MATMUL, HUNG, END, status=1)
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert "0.5" in captured.out
    assert "RM612" in captured.err
    assert "bandwidth (timeout)" in captured.err
    assert f"where: {tmp_path / 'bench.log'}" in captured.err
    (made,) = bench.records
    assert not made.passed
    assert [n.value for n in made.numbers] == [0.5, 3.0]


@pytest.mark.parametrize(("events", "status"), [((), 0), ((MATMUL, END), 1), ((HUNG,), 0)])
def test_bench_without_a_sound_end_fails(bench, events, status, capsys):
    with pytest.raises(SystemExit):
        bench(*events, status=status)
    assert "RM612" in capsys.readouterr().err


def test_wrong_usage_is_no_bench(bench, capsys):
    with pytest.raises(SystemExit) as ended:
        bench({"event": "error", "code": "RM525"}, status=2)
    assert ended.value.code == 2
    assert "RM612" not in capsys.readouterr().err
    assert bench.records == []


def test_bench_where_no_benchmark_applies_has_not_failed(bench, capsys):
    bench(UNFIT, END | {"ran_on": "nothing"}, status=1)
    shown, stderr = capsys.readouterr()
    assert shown == ""
    assert "nothing of what was chosen can be measured here" in stderr
    assert "measured on" not in stderr
    assert "fail" not in stderr.casefold()
    assert bench.records == []


@pytest.mark.parametrize(("events", "status"), [((UNFIT,), 1), ((UNFIT, HUNG, END), 1), ((UNFIT, END), 137)])
def test_benchmark_that_does_not_apply_excuses_no_other_end(bench, events, status, capsys):
    with pytest.raises(SystemExit):
        bench(*events, status=status)
    assert "RM612" in capsys.readouterr().err


def test_json_is_for_programs(bench, capsys):
    bench(MATMUL, END, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["figures"] == [
        {"probe": "matmul", "name": "fp32 64x64x64", "value": 0.5, "unit": "TFLOP/s", "spread": 3.0}
    ]
    assert document["ran_on"] == END["ran_on"]


def test_bench_without_any_figure_shows_no_head_of_a_table(bench, capsys):
    with pytest.raises(SystemExit):
        bench(HUNG, END, status=1)
    assert capsys.readouterr().out == ""


def test_single_chosen_benchmark_is_not_a_whole_bench(bench):
    bench(MATMUL, END, only=["matmul"])
    assert not bench.records[0].whole


def test_bench_never_raises_a_level_nor_takes_one_away():
    built = [record("build"), record("prove", 1)]
    for passed in (True, False):
        benched = record("bench", 2, passed=passed)
        assert cell_statuses(cells.GFX1100, [*built, benched], rendered=True) == cell_statuses(
            cells.GFX1100, built, rendered=True
        )
        assert "raises no level" in why_not(benched, cells.GFX1100)


@pytest.mark.parametrize(
    ("cell", "options", "expected"),
    [
        (cells.GFX1100, {}, {"device": "rocm"}),
        (cells.GFX1100, {"device": ""}, {"device": "rocm"}),
        (cells.GFX1100, {"device": "cpu"}, {}),
        (cells.CPU, {}, {}),
    ],
)
def test_cell_of_a_card_must_measure_a_card(cell, options, expected):
    job_request = JobRequest(program=BENCH, request=Request(), where="container", options=options)
    assert job.expected(job_request, cell) == expected
