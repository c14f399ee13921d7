"""Arguments of a container run."""

import shlex

import pytest

from rocmatrix.doctor.environment.launch import of_command


def test_arguments_of_a_run_are_divided_into_options_and_image():
    launch = of_command(
        shlex.split("podman run -e HSA_X=1 --group-add keep-groups -v /a:/b:z --rm -it img:1 --ipc host"), "x"
    )
    assert (launch.image, launch.groups, launch.ipc) == ("img:1", ("keep-groups",), None)
    assert launch.variables == (("HSA_X", "1"),)
    assert of_command(["docker", "build", "."], "x") is None
    assert of_command(["ls"], "x") is None


@pytest.mark.parametrize(
    ("words", "image", "partial"),
    [
        ("--device=/dev/dri --group-add $RENDER_GID rocm/a:1", "rocm/a:1", False),
        ("--group-add '$(getent group render | cut -d: -f3)' -u ${USER_ID} -e TOKEN rocm/a:1", "rocm/a:1", False),
        ("-v $PWD:/work -w $DIR $IMAGE bash", "$IMAGE", False),
        ("--device=/dev/dri $EXTRA rocm/a:1", "rocm/a:1", True),
        ("--group-add $RENDER_GID $EXTRA --ipc=host rocm/a:1", "rocm/a:1", True),
        ("'$(options for amd)' --ipc=host rocm/a:1", "rocm/a:1", True),
        ("'`options for amd`' --ipc=host rocm/a:1", "rocm/a:1", True),
    ],
)
def test_variable_as_value_of_an_option_hides_no_further_options(words, image, partial):
    launch = of_command(["docker", "run", *shlex.split(words)], "x")
    assert (launch.image, launch.partial) == (image, partial)
