"""Tasks that look at a host and at what would run on it, and change nothing."""

from invoke.context import Context
from invoke.tasks import task

TREE = "read the machine whose file tree starts here, such as a recording, instead of this one"


@task(
    auto_shortflags=False,
    help={
        "json": "print the findings as JSON, for programs",
        "sysfs": TREE,
        "cell": "judge the host, the shell and the files as this cell will meet them, and its own variables too",
        "env": "only the variables of this shell",
        "compose": "only the variables of a compose file, with those of its env files",
        "dockerfile": "only the variables and the torch of a Dockerfile",
        "script": "only a shell or Slurm script (with its docker run lines), or a requirements file (.txt, .in)",
    },
)
def doctor(
    c: Context,
    json: bool = False,
    sysfs: str = "",
    cell: str = "",
    env: bool = False,
    compose: str = "",
    dockerfile: str = "",
    script: str = "",
) -> None:
    """Examine the host and its environment: what was seen, why it matters, and what fixes it."""
    from rocmatrix.cli.commands import doctor

    asked = doctor.Asked(sysfs=sysfs, cell=cell, env=env, compose=compose, dockerfile=dockerfile, script=script)
    doctor.doctor(asked, as_json=json)


@task(auto_shortflags=False, help={"svg": "write the picture to this file as well", "sysfs": TREE})
def topology(c: Context, svg: str = "", sysfs: str = "") -> None:
    """Draw cards, the links between them, and NUMA nodes."""
    from rocmatrix.cli.commands import doctor

    doctor.topology(sysfs=sysfs, svg=svg)
