"""Shell lines of a Slurm step that read its own node before Python starts: user, groups, device nodes, cards.

None of this is known where a job is submitted: render nodes, groups and users' numbers differ between machines, and
Slurm chooses the cards. The text holds no value of a job; a job's own words come as arguments.
Sources: Slurm's manuals of gres.conf and srun; AMD's conceptual/gpu-isolation; the user guides of Apptainer and of
SingularityCE, which has the same options and reads variables under its own prefix only; NVIDIA/pyxis and NVIDIA/enroot.
"""

from __future__ import annotations

# Slurm sets these beside ROCR_VISIBLE_DEVICES where gres.conf names no library; HIP would count a second time,
# among the cards that are left, and find none.
ONE_LIST = """\
if [ -n "${ROCR_VISIBLE_DEVICES:-}" ]; then
    unset HIP_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES GPU_DEVICE_ORDINAL
fi
"""
ABSENT = """\
refuse() {
    echo "rocmatrix RM425: $1 on $(hostname)" >&2
    exit 1
}
"""
NEEDS_CARDS = "[ -c /dev/kfd ] || refuse 'no /dev/kfd'\n"
NEEDS_RDMA = "[ -d /dev/infiniband ] || refuse 'no /dev/infiniband'\n"
# Locked memory counts against a limit that Slurm's daemon hands down; `docker run` is given its own.
LOCKED = 'ulimit -l unlimited 2>/dev/null || echo "rocmatrix: memory locked for RDMA: at most $(ulimit -l) KiB" >&2\n'

DOCKER_NODES = """\
for node in {nodes}; do
    [ -c "$node" ] || continue
    set -- "--device=$node:$node:rw" "--group-add=$(stat -c %g "$node")" "$@"
done
"""
DOCKER = """\
user=$(id -u)
set -- "--user=$user:$(id -g)" "--mount=type=volume,source=$ROCMATRIX_CACHE-$user,target=/cache" "$@"
exec docker run --rm --pull=never "$@"
"""
# Without it /tmp and /cache are in Apptainer's own memory, 64 MiB for both by default (apptainer.conf, "sessiondir max
# size"; IDEALLab/EngiBench#180), which compiled kernels fill.
WORK = '"${TMPDIR:-/tmp}/rocmatrix-$SLURM_JOB_ID"'
OWN_FOLDER = f"""\
work={WORK}
mkdir -p -m 700 "$work" && [ -O "$work" ] && [ ! -L "$work" ] || refuse "no folder of this user at $work"
"""
APPTAINER_WORK = OWN_FOLDER + 'set -- "--workdir=$work" "$@"\n'
# A site has Apptainer, or the Singularity that it was forked from, whose variables begin otherwise.
SINGULARITY = """\
command -v apptainer >/dev/null && exec apptainer exec "$@"
command -v singularity >/dev/null || refuse "no apptainer and no singularity in the PATH ($PATH)"
for name in $(env | sed -n 's/^APPTAINERENV_\\([A-Za-z0-9_]*\\)=.*/\\1/p'); do
    eval "export SINGULARITYENV_$name=\\"\\$APPTAINERENV_$name\\""
done
exec singularity exec "$@"
"""
APPTAINER_NODES = """\
for node in {nodes}; do
    [ ! -e "$node" ] || set -- "--bind=$node" "$@"
done
"""
# Enroot has the image's own variables in /etc/environment, and starts a login's shell, whose /etc/profile sets another
# PATH on Debian. Pyxis adds the node's variables: its PYTHONPATH and libraries of its modules would go before the
# image's.
PYXIS_CLEAN = """\
of_image=$(sed -n 's/^PATH=//p' /etc/environment)
PATH=${of_image:-$PATH}
for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'); do
    case $name in
        PATH | PWD | SLURM_* | ROCR_VISIBLE_DEVICES) ;;
        *) grep -q "^$name=" /etc/environment || unset "$name" ;;
    esac
done
exec "$@"
"""


def native(*, cards: bool) -> str:
    """Return the text for Python on the node itself; Slurm confines its cards."""
    return (ONE_LIST if cards else "") + 'exec "$@"\n'


def docker(*, cards: bool, rdma: bool) -> str:
    """Return the text for `docker run`, whose options are the arguments; the volume's name is in ROCMATRIX_CACHE."""
    given = ["/dev/kfd", "/dev/dri/renderD*"] * cards + ["/dev/infiniband/*"] * rdma
    text = _needs(cards=cards, rdma=rdma)
    text += DOCKER_NODES.format(nodes=" ".join(given)) if given else ""
    chosen = '[ -z "${ROCR_VISIBLE_DEVICES:-}" ] || set -- --env=ROCR_VISIBLE_DEVICES "$@"\n'
    return text + (chosen if cards else "") + DOCKER


def apptainer(*, cards: bool, rdma: bool) -> str:
    """Return the text for `apptainer exec` or `singularity exec`, whose options are the arguments.

    It stays within the job's own limits.
    """
    given = ["/dev/kfd", "/dev/dri"] * cards + ["/dev/infiniband"] * rdma
    text = _needs(cards=cards, rdma=rdma, always=True) + APPTAINER_WORK + (LOCKED if rdma else "")
    text += APPTAINER_NODES.format(nodes=" ".join(given)) if given else ""
    chosen = (
        'if [ -n "${ROCR_VISIBLE_DEVICES:-}" ]; then\n'
        '    export APPTAINERENV_ROCR_VISIBLE_DEVICES="$ROCR_VISIBLE_DEVICES"\nfi\n'
    )
    return text + (chosen if cards else "") + SINGULARITY


def before_pyxis(*, cards: bool, rdma: bool) -> str:
    """Return the text for a step before Pyxis unpacks an image: what the node lacks, and a folder for the cache."""
    return _needs(cards=cards, rdma=rdma, always=True) + OWN_FOLDER


def pyxis(*, rdma: bool) -> str:
    """Return the text for a step that Pyxis has put into its container, with the node's variables in it."""
    return (LOCKED if rdma else "") + PYXIS_CLEAN


def _needs(*, cards: bool, rdma: bool, always: bool = False) -> str:
    return (ABSENT if cards or rdma or always else "") + (NEEDS_CARDS if cards else "") + (NEEDS_RDMA if rdma else "")
