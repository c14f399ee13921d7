"""A name that a script never sets is reported where the name that was meant is plain."""

import pytest

from rocmatrix.doctor.environment.shell import names


def nearly(script):
    return [(one.what, int(one.where.rpartition(":")[2])) for one in names.nearly_set(script, "a.sh")]


@pytest.mark.parametrize(
    ("set_name", "used"),
    [
        ("CCONTAINER", "CONTAINER"),
        ("CONTAINER", "CONTAINERR"),
        ("IMAGE_NAME", "IMAGE_NANE"),
        ("MODLE_DIR", "MODEL_DIR"),
    ],
)
def test_name_with_one_letter_amiss_is_reported_at_its_use(set_name, used):
    assert nearly(f"#!/bin/bash\n{set_name}=a.sif\nsrun singularity exec ${{{used}}} python\n") == [(f"${used}", 3)]


@pytest.mark.parametrize(
    "script",
    [
        "CONTAINER=a\nrun $CONTAINER\n",
        "CCONTAINER=a\nrun ${CONTAINER:-b}\n",  # it may be unset
        "CCONTAINER=a\nrun $CONTAINER $CCONTAINER\n",  # both are used
        "export CCONTAINER=a\nrun $CONTAINER\n",  # for what the script starts
        "CCONTAINER=a\nread -r CONTAINER\nrun $CONTAINER\n",
        "NODE1_NAME=a\nrun $NODE2_NAME\n",
        "LOG=a\nrun $LOGS\n",  # too short
        "# CCONTAINER=a\nrun $CONTAINER\n",
        "CCONTAINER=a\nrun '\\$CONTAINER'\n",
    ],
)
def test_name_that_may_be_intended_is_not_reported(script):
    assert nearly(script) == []
