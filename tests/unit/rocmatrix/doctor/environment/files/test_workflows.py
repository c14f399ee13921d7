"""What is read of a workflow of GitHub and of a pipeline of GitLab."""

import pytest

from rocmatrix.doctor.environment.files import recognise, workflows

PIPELINE = """
image: python:3.12
variables:
  ROCM: "6.4.1"
  DEPTH: {value: "1", description: levels}
.amd: &amd
  image: {name: "rocm/dev-ubuntu-22.04:$ROCM", entrypoint: [""]}
  tags: [rocm, docker]
  variables: {HSA_ENABLE_SDMA: "0"}
build:
  extends: .amd
  script:
    - pip install numpy
    - - echo one
      - !reference [.amd, script]
    - |
      cmake -B build \\
        -DGPU_TARGETS=gfx90a
      make
test:
  <<: *amd
  script: docker run --device /dev/dri rocm/app:$ROCM
lint:
  script: [ruff check]
"""


def put(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


def test_job_without_entries_is_read(tmp_path):
    (job,) = workflows.of_workflow(put(tmp_path, "a.yaml", "on: push\njobs: {b: {}}\n"))
    assert (job.where.rpartition(":")[2], job.commands, job.notes) == ("1", (), ())


def test_jobs_of_a_pipeline_have_what_they_extend_and_merge(tmp_path):
    path = put(tmp_path, ".gitlab-ci.yml", PIPELINE)
    build, test, started, lint = recognise.subjects(path, shell={})
    assert [(one.image, one.for_amd) for one in (build, test, lint)] == [
        ("rocm/dev-ubuntu-22.04:6.4.1", True), ("rocm/dev-ubuntu-22.04:6.4.1", True), ("python:3.12", False),
    ]  # fmt: skip
    assert [(row.name, row.value) for row in build.variables] == [("ROCM", "6.4.1"), ("HSA_ENABLE_SDMA", "0")]
    assert [(one.text, one.where.rpartition(":")[2]) for one in build.commands] == [
        ("pip install numpy", "13"), ("echo one", "14"), ("cmake -B build    -DGPU_TARGETS=gfx90a", "17"),
        ("make", "19"),
    ]  # fmt: skip
    assert (started.image, started.launch.devices) == ("rocm/app:6.4.1", ("/dev/dri",))


@pytest.mark.parametrize(
    "text",
    ["a: {extends: a, script: ls}\n", "a: {extends: [b, 7], script: {x: 1}, tags: 3}\nb: 5\n", "include: x\n", "- a\n",
     "a: &a {script: [*b], <<: [1, {tags: [x]}]}\n".replace("*b", "ls")],
)  # fmt: skip
def test_pipeline_of_odd_form_is_read(tmp_path, text):
    path = put(tmp_path, ".gitlab-ci.yml", text)
    assert all(" job " in one.name for one in recognise.subjects(path, shell={}))


@pytest.mark.parametrize(
    ("text", "known"), [("a: {script: ls, stage: b}\n", True), ("script: ls\n", False), ("a: {script: 1}\n", False)]
)
def test_pipeline_without_its_name_is_known_by_its_jobs(tmp_path, text, known):
    root = workflows.merged(next(iter(workflows.documents(put(tmp_path, "ci.yml", text)))))
    assert workflows.is_pipeline(tmp_path / "ci.yml", root) is known
