"""Ansible: which file is one, and what its tasks run, with the place of each."""

import pytest
import yaml

from rocmatrix.doctor.environment.files.machines import tasks


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("- hosts: a\n", True), ("- import_playbook: b.yml\n", True), ("- name: c\n  ansible.builtin.shell: d\n", True),
        ("- name: e\n  run: f\n", False), ("- g\n", False), ("hosts: h\n", False), ("- shell: i\n", False),
    ],
)  # fmt: skip
def test_list_of_plays_or_tasks_is_ansible(text, is_one):
    assert tasks.is_ansible(yaml.compose(text)) is is_one


def test_commands_have_their_lines_and_what_the_play_sets(tmp_path):
    path = tmp_path / "site.yml"
    path.write_text(
        "- hosts: a\n  vars: {v: '6.4', own: '{{ own }}'}\n  tasks:\n    - shell: |\n        set -e\n"
        "        echo {{ v }} {{ own }} {{ x | y }}\n    - command: {cmd: 'ls {{ z }}'}\n    - apt: {name: 'b, c'}\n"
    )
    (found,) = tasks.of_tasks(path)
    assert [(one.text, one.where.rpartition(":")[2]) for one in found.commands] == [
        ("set -e", "5"), ("echo 6.4  ${_}", "6"), ("ls ${z}", "7"), ("apt-get install -y  b c", "8"),
    ]  # fmt: skip


def test_tasks_that_contain_one_another_are_read_once(tmp_path):
    path = tmp_path / "loop.yml"
    path.write_text("- &a\n  hosts: b\n  tasks: [*a]\n")
    assert tasks.of_tasks(path)[0].commands == ()


@pytest.mark.parametrize(
    "module", ["docker_container: {image: rocm/vllm:v1, devices: ", "podman_container: {image: rocm/vllm:v1, device: "]
)
def test_container_has_the_devices_of_its_task(tmp_path, module):
    path = tmp_path / "site.yml"
    path.write_text(f"- hosts: a\n  tasks:\n    - name: b\n      {module}[/dev/kfd, /dev/dri]}}\n")
    (launch,) = [one.launch for one in tasks.of_tasks(path) if one.launch]
    assert [device.partition(":")[0] for device in launch.devices] == ["/dev/kfd", "/dev/dri"]
