"""Compose files and env files are read with the line of every variable, as Docker Compose reads them."""

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rocmatrix.doctor.environment import compose, dockerfile
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_compose_in_both_forms_with_merges_env_files_and_values_of_the_shell(tmp_path):
    write(tmp_path, ".env", "GPUS=2\n")
    write(tmp_path, "train.env", '# note\n\nexport ONE=1\nTWO="a b"\n')
    path = write(
        tmp_path,
        "compose.yaml",
        "x-env: &env\n  SHARED: 'yes'\n  OWN: shared\nservices:\n  map:\n"
        "    image: rocmatrix:rocm7.2-torch2.12.1-gfx1100\n    environment:\n      <<: *env\n      OWN: mine\n"
        "      GPUS: ${GPUS:-0}\n      PASSED:\n      PRICE: $$5\n"
        "    env_file: [train.env, {path: none.env, required: false}]\n"
        "  list:\n    image: x\n    environment: ['A=${SHELL_A}', PASSED, ABSENT]\n"
        "    command: [torchrun, --backend, hccl]\n",
    )
    mapped, listed = compose.of_compose(path, shell={"PASSED": "p", "SHELL_A": "s"}, matrix=MATRIX)
    assert {row.name: row.value for row in mapped.variables} == {
        "ONE": "1",
        "TWO": "a b",
        "SHARED": "yes",
        "OWN": "mine",
        "GPUS": "2",
        "PASSED": "p",
        "PRICE": "$5",
    }
    where = {row.name: row.where for row in mapped.variables}
    assert (where["ONE"], where["SHARED"], where["OWN"]) == (
        f"{tmp_path}/train.env:3",
        f"{path}:2",
        f"{path}:9",
    )
    assert (mapped.architectures, mapped.torch, mapped.rocm) == (("gfx1100",), "2.12.1", "7.2")
    assert {row.name: row.value for row in listed.variables} == {"A": "s", "PASSED": "p"}
    assert listed.commands[0].text == "torchrun --backend hccl"
    assert listed.architectures == ()


def test_compose_file_is_read_as_compose_reads_it(tmp_path):
    write(tmp_path, "train.env", "ONE=1\nTHREE='x y'\n")
    path = write(
        tmp_path,
        "compose.yaml",
        "services:\n  s:\n    image: x\n    env_file: train.env\n    environment: {A: '${NAME:-d}', B: 2, C: $$x}\n",
    )
    try:
        argv = ["docker", "compose", "--file", str(path), "config", "--format", "json"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        pytest.skip(f"docker compose is not here: {error}")
    import json

    # `config` writes $ as $$ again, for its output is a compose file
    document = {k: v.replace("$$", "$") for k, v in json.loads(done.stdout)["services"]["s"]["environment"].items()}
    (subject,) = compose.of_compose(path, shell={})
    assert {row.name: row.value for row in subject.variables} == document


@pytest.mark.parametrize(
    ("read", "name", "text", "code"),
    [
        (dockerfile.of_dockerfile, "Dockerfile", "RUN true\n", "RM311"),
        (dockerfile.of_dockerfile, "Dockerfile", "FROM x\nENV A=1 B\n", "RM311"),
        (dockerfile.of_dockerfile, "Dockerfile", None, "RM310"),
        (lambda p: compose.of_compose(p, shell={}), "compose.yaml", "services: [", "RM311"),
        (lambda p: compose.of_compose(p, shell={}), "compose.yaml", "version: '3'\n", "RM311"),
        (lambda p: compose.of_compose(p, shell={}), "compose.yaml", "services: {a: {env_file: .}}\n", "RM310"),
        (lambda p: tuple(compose.env_file(p)), "x.env", "A=1\n'broken\n", "RM311"),
    ],
)
def test_unreadable_file_is_a_coded_error(tmp_path, read, name, text, code):
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(RocmatrixError) as caught:
        read(path)
    assert caught.value.code == code
    assert str(tmp_path) in str(caught.value)


def test_env_file_that_is_not_here_is_a_note_and_the_rest_is_read(tmp_path):
    path = tmp_path / "compose.yaml"
    path.write_text("services: {a: {env_file: gone.env, environment: {A: 1}}}\n")
    (subject,) = compose.of_compose(path, shell={})
    assert [row.name for row in subject.variables] == ["A"]
    (note,) = subject.notes
    assert (note.rule, note.severity) == ("env-file-absent", "note")
    assert "gone.env" in note.what


YAML = st.recursive(
    st.sampled_from(["x", "", "A=1", "${B", "${B:-", "$$", "1", "~"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["services", "s", "environment", "env_file", "command", "A"]), inner, max_size=4
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(YAML, YAML, YAML)
def test_compose_file_of_any_text_fails_in_no_other_way(tmp_path, environment, files, command):
    import json

    service = {"environment": environment, "env_file": files, "command": command}
    path = write(tmp_path, "compose.yaml", json.dumps({"services": {"s": service, "t": environment}}))
    try:
        assert len(compose.of_compose(path, shell={})) == 2
    except RocmatrixError as error:
        assert error.code in ("RM310", "RM311")


def test_merges_of_merges_come_to_an_end_and_the_first_wins(tmp_path):
    rows = [f"x-{n}: &l{n} {{N: '{n}', K{n}: a, <<: [{', '.join(10 * [f'*l{n - 1}'])}]}}" for n in range(1, 20)]
    last = "services: {s: {image: x, environment: {<<: [*l5, *l19]}}}"
    path = write(tmp_path, "compose.yaml", "\n".join(["x-0: &l0 {N: '0'}", *rows, last, ""]))
    (service,) = compose.of_compose(path, shell={})
    assert {row.name: row.value for row in service.variables} == {"N": "5", **{f"K{n}": "a" for n in range(1, 20)}}


def test_compose_that_is_nested_too_deeply_is_refused(tmp_path):
    with pytest.raises(RocmatrixError, match="nested too deeply"):
        compose.of_compose(write(tmp_path, "compose.yaml", "[" * 3000 + "]" * 3000), shell={})


def test_services_of_every_document_are_read(tmp_path):
    path = tmp_path / "compose.yml"
    path.write_text("services: {a: {image: x}}\n---\nservices: {b: {image: y}}\n---\nother: 1\n")
    assert [one.image for one in compose.of_compose(path, shell={})] == ["x", "y"]
