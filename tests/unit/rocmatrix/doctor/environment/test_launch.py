"""Arguments of a container run."""

import shlex

from rocmatrix.doctor.environment.launch import of_command


def test_arguments_of_a_run_are_divided_into_options_and_image():
    launch = of_command(
        shlex.split("podman run -e HSA_X=1 --group-add keep-groups -v /a:/b:z --rm -it img:1 --ipc host"), "x"
    )
    assert (launch.image, launch.groups, launch.ipc) == ("img:1", ("keep-groups",), None)
    assert launch.variables == (("HSA_X", "1"),)
    assert of_command(["docker", "build", "."], "x") is None
    assert of_command(["ls"], "x") is None
