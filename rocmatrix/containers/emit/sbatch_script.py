"""A run as a Slurm batch script: srun starts torchrun once a node, and its ranks meet on the batch host.

Underneath is a Python that the nodes share, Docker, Apptainer or Pyxis: a `Launcher` each, made from data alone. The
script holds no variable of the submitter's shell, so no secret: a job gets the environment of a login on its node, so
programs are found where the node has them. What only the node knows it finds out itself (`cluster.on_node`).
A stop reaches the ranks as SIGTERM, on which they write a checkpoint; before its time limit a job is stopped early
enough and queued again.
Sources: Slurm's manuals of sbatch, srun and scancel; Apptainer's user guide; PyTorch's torchrun.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from rocmatrix.containers import settings
from rocmatrix.containers.emit.cluster import on_node
from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
from rocmatrix.containers.emit.docker import docker_options
from rocmatrix.containers.emit.parts import refuse_portable
from rocmatrix.containers.emit.torchrun import ALONE, MODULE, TRAINER
from rocmatrix.containers.least_privilege import CACHE_FOLDER
from rocmatrix.containers.portable_spec import OWNER, locked_memory
from rocmatrix.containers.runspec import RunSpec

WARNING_SECONDS = 120  # before the time limit: enough to write a checkpoint
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)
LOG = re.compile(r"/[^%\"\\\r\n]*")  # a percent sign begins a field of Slurm's own
PLAIN = re.compile(r"[\w./%+=,@-]+")  # sbatch takes quotes apart as a shell does, and ends a line at #
CONTAINER = '"rocmatrix-$SLURM_JOB_ID"'

HEAD = """\
#!/bin/sh
# Made by `./invokew submit`. Nothing of the submitter's environment is passed on: the environment is the one of a login
# on the node, its limits are the node's, and what differs between nodes is looked up there.
"""

# The heredoc is quoted: no shell but the node's reads what is in it.
BODY = """\
{loading}for program in {programs}; do
    command -v "$program" >/dev/null && continue
    echo "rocmatrix RM425: no $program in the PATH of a login on $(hostname): $PATH" >&2
    exit 127
done
set -u
export SLURM_EXPORT_ENV=ALL
{meeting}on_node=$(cat <<'ON_NODE'
{on_node}ON_NODE
)
again=
stop() {{
    trap '' USR1 TERM
    scancel --quiet --signal=TERM "$SLURM_JOB_ID"
}}
trap 'again=yes; stop' USR1
trap stop TERM
{before}srun --kill-on-bad-exit=1{cores}{step} sh -c "$on_node" on-node \\
    {command} &
step=$!
status=0
wait "$step" || status=$?
# A signal ends `wait`, not the step, which is writing its checkpoint then.
while kill -0 "$step" 2>/dev/null; do
    status=0
    wait "$step" || status=$?
done
{after}# Within the grace time of a preemption Slurm signals the step alone, and a job that ends then counts as failed.
[ "$status" -eq 0 ] || case $(scontrol show job "$SLURM_JOB_ID") in *" PreemptTime="[0-9]*) again=yes ;; esac
if [ -n "$again" ] && [ "$status" -ne 0 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""
MEETING = """\
# The batch script runs on the first node, so the ranks meet where it runs, each job at a port of its own.
head=$(hostname)
port=$((20000 + SLURM_JOB_ID % 12000))
"""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Request to the scheduler. `cards` and `processes` are each node's; `request` is what the site asks for.

    `arguments` are the trainer's. `log` is a path that may hold `%j`, the job's number.
    """

    name: str
    arguments: tuple[str, ...]
    log: str
    nodes: int = 1
    processes: int = 1
    cards: int = 0
    request: SlurmRequest = field(default_factory=SlurmRequest)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is no plain word, as a line of #SBATCH needs it")
        if self.nodes < 1 or self.processes < 1:
            raise ValueError("a run has one node and one process at least")
        if not LOG.fullmatch(self.log.replace("%j", "")):
            raise ValueError(f"a line of #SBATCH would misread the path {self.log!r}")


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """Launch of Python on a node: the command before torchrun's own, and lines before and after the step.

    `on_node` is what each node's shell does with that command; `programs` have to be in the node's PATH; `step` are
    options of srun, as a shell reads them.
    `whole_node` asks for every card of a node: an engine starts containers outside of the job's own limits.
    """

    command: tuple[str, ...]
    on_node: str = 'exec "$@"\n'
    programs: tuple[str, ...] = ()
    step: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    whole_node: bool = False


def sbatch_script(batch: Batch, launcher: Launcher) -> str:
    """Return the batch script, for a shell of POSIX."""
    options = "".join(f"#SBATCH {option}\n" for option in _options(batch, launcher))
    exports = "".join(f"export {name}={shlex.quote(text)}\n" for name, text in launcher.environment.items())
    command = " \\\n    ".join(
        [" ".join(launcher.command), " ".join(_torchrun(batch)), shlex.join([*TRAINER, *batch.arguments])]
    )
    lines = {"before": launcher.before, "after": launcher.after, "loading": batch.request.loading}
    body = BODY.format(
        command=command,
        meeting=MEETING if batch.nodes > 1 else "",
        on_node=launcher.on_node,
        cores=_cores(batch),
        step="".join(f" \\\n    {word}" for word in launcher.step) + " \\\n   " * bool(launcher.step),
        programs=" ".join(("srun", "scancel", "scontrol", *launcher.programs)),
        **{name: "".join(f"{line}\n" for line in rows) for name, rows in lines.items()},
    )
    return HEAD + options + exports + body


def _options(batch: Batch, launcher: Launcher) -> Iterator[str]:
    yield f"--job-name={batch.name}"
    yield f"--nodes={batch.nodes}"
    yield "--ntasks-per-node=1"
    yield from batch.request.options(batch.cards)
    if launcher.whole_node:
        yield "--exclusive"
    yield "--requeue"
    yield "--open-mode=append"
    yield f"--signal=B:USR1@{WARNING_SECONDS}"
    yield f"--output={batch.log}" if PLAIN.fullmatch(batch.log) else f'--output="{batch.log}"'
    yield "--export=NONE"  # the environment of a login on the node, and nothing of the submitter's
    yield "--propagate=NONE"  # else the limits of the submitter's shell hold there, locked memory among them


def _cores(batch: Batch) -> str:
    """Return the cores of a step as an option: from Slurm 22.05 on, srun does not take them over from sbatch."""
    return f" --cpus-per-task={batch.request.cpus}" if batch.request.cpus else ""


def _torchrun(batch: Batch) -> Iterator[str]:
    yield from MODULE
    if batch.nodes == 1:  # no name of a machine means anything without a network; the loopback is always there
        yield from (*ALONE, f"--nproc-per-node={batch.processes}")
        return
    yield f"--nnodes={batch.nodes}"
    yield f"--nproc-per-node={batch.processes}"
    yield "--rdzv-backend=c10d"
    yield '--rdzv-id="$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"'
    yield '--rdzv-endpoint="$head:$port"'


def native_launcher(python: str, environment: Mapping[str, str], *, cards: bool = False) -> Launcher:
    """Return the launcher of a Python that all nodes find at the same path. Slurm itself confines its cards.

    Args:
        python: path of the interpreter, the same on all nodes.
        environment: variables to set, by name.
        cards: the job uses GPUs.
    """
    return Launcher(command=(shlex.quote(python), "-P"), environment=environment, on_node=on_node.native(cards=cards))


def in_docker(spec: RunSpec, *, cards: bool, rdma: bool = False) -> Launcher:
    """Return the launcher of Docker's client; each node takes the image from its own engine.

    A container outlives a client that was killed, so it has the job's name, and is removed by that name.
    User, groups and device nodes are the node's. Raises ValueError for a portable spec.

    Args:
        cards: the job uses GPUs.
        rdma: the job uses the nodes' RDMA adapters.
    """
    remove = f"srun --ntasks-per-node=1 docker rm --force {CONTAINER} >/dev/null 2>&1 || :"
    kept = tuple(one for one in spec.settings if not _cache_volume(one))
    in_container = replace(spec, entrypoint="python", settings=(*kept, *([locked_memory()] if rdma else [])))
    return Launcher(
        command=(shlex.join(docker_options(in_container)), f"--name={CONTAINER}", shlex.quote(spec.image)),
        environment={"ROCMATRIX_CACHE": f"rocmatrix-cache-{spec.cell}"},
        before=("# Left from a run that was killed on one of these nodes.", remove),
        after=(remove,),
        on_node=on_node.docker(cards=cards, rdma=rdma),
        programs=("docker",),
        whole_node=cards,
    )


def _cache_volume(setting: settings.Setting) -> bool:
    """Return whether a setting is the volume whose name ends with the user's number, which the node adds."""
    return isinstance(setting, settings.Mount) and setting.target == CACHE_FOLDER and setting.origin.endswith(OWNER)


def in_apptainer(spec: RunSpec, *, cards: bool, rdma: bool = False) -> Launcher:
    """Return the launcher of Apptainer or Singularity, which keep the job's user, groups and cards.

    `spec.image` is what they take. Each node looks for either.

    Raises ValueError for a portable spec, and for a setting that Apptainer has no word for.

    Args:
        cards: the job uses GPUs.
        rdma: the job uses the nodes' RDMA adapters.
    """
    refuse_portable(spec)
    # --containall: neither the home folder, nor the environment, nor the devices of the node but those named
    options = ["--containall", "--no-home", "--pwd=/training"]
    for setting in spec.settings:
        options += _apptainer(setting)
    # Not --env=NAME=content, in which a comma ends the content.
    given = {row.name: row.content for row in spec.of(settings.Environment)}
    # Apptainer refuses to set HOME (apptainer/apptainer#388), which then is a folder that the container lacks
    home = ["env", f"HOME={given.pop('HOME')}"] if "HOME" in given else []
    environment = {f"APPTAINERENV_{name}": content for name, content in given.items()}
    return Launcher(
        command=(shlex.join([*options, spec.image, *home, "python"]),),
        environment=environment,
        on_node=on_node.apptainer(cards=cards, rdma=rdma),
        after=(f"srun --ntasks-per-node=1 sh -c 'rm -rf -- {on_node.WORK}' >/dev/null 2>&1 || :",),
    )


def _apptainer(setting: settings.Setting) -> Sequence[str]:  # noqa: PLR0911 -- one line a kind
    match setting:
        case settings.Mount(kind="bind"):
            return [_bind(setting.origin, setting.target) + (":ro" if setting.read_only else "")]
        case settings.Mount() | settings.Tmpfs():
            return [f"--scratch={setting.target}"]
        case settings.SharedMemory():
            # --containall mounts one of half the memory (container_linux.go), and warns of a bind there
            return []
        case settings.DropCapability(value="ALL"):
            return ["--drop-caps=all"]
        case settings.SecurityOption(value="no-new-privileges:true"):
            return []  # Apptainer sets it for every container
        case (
            settings.User()
            | settings.Group()
            | settings.Network()
            | settings.ReadOnlyRoot()
            | settings.Init()
            | settings.Environment()
        ):
            # The job's own user, groups and network; an image is read-only; Slurm ends all processes of a job.
            return []  # variables are exported by the script
        case settings.AddCapability():
            return [f"--add-caps={setting.value}"]
        case (
            settings.DropCapability()
            | settings.SecurityOption()
            | settings.Limit()
            | settings.Ipc()
            | settings.Port()
            | settings.CdiDevice()
            | settings.Device()
        ):
            raise ValueError(f"Apptainer has no word for {setting.flag}={setting.value}")
        case _:
            assert_never(setting)


def _bind(origin: str, target: str) -> str:
    if {",", ":"} & {*origin, *target}:
        raise ValueError(f"Apptainer would misread --bind={origin}:{target}")
    return f"--bind={origin}:{target}"
