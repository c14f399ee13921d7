"""RM3xx: hardware and the doctor. RM4xx, RM670: the wrapper, the native environment and schedulers."""

from __future__ import annotations

from rocmatrix.runtime.codes.entry import CatalogEntry, entries

HOSTS: tuple[CatalogEntry, ...] = entries(
    (
        "RM301",
        "No AMD card can be used",
        "The kernel's topology lists no GPU, or the driver is not loaded.",
        "Load amdgpu (`sudo modprobe amdgpu`). For a card elsewhere: `./invokew build --gpu CARD`, or `submit`.",
    ),
    (
        "RM302",
        "The card's nodes cannot be used",
        "/dev/kfd or a render node is missing or closed to this user.",
        "Join the numeric group of the node that is named, then log in again.",
    ),
    (
        "RM303",
        "No card of this host fits",
        "The host has AMD cards, but none of the architecture that the cell is built for, or none of that number.",
        "Take a cell of an architecture that is listed, or choose cards by their number with --cards.",
    ),
    (
        "RM310",
        "Nothing to examine",
        "The folder or file that the doctor was given is missing or cannot be read.",
        "Give --sysfs the folder that stands for / of the machine, or name an existing compose file or Dockerfile.",
    ),
    (
        "RM311",
        "A file of settings cannot be understood",
        "A compose file, an env file or a Dockerfile breaks its own syntax, so its environment is not known.",
        "Correct the named line; `docker compose config` and `docker build --check` show how the engine reads it.",
    ),
    (
        "RM401",
        "No suitable Python",
        "The wrapper needs Python 3.11 or newer with the venv module.",
        "Install it, or name one with ROCMATRIX_PYTHON=/path/to/python3.",
    ),
    (
        "RM402",
        "The environment could not be made",
        "Making .venv or installing the locked requirements failed.",
        "Read the installer's last lines; a hash mismatch means that the source served another file.",
    ),
    (
        "RM403",
        "The trainer cannot run natively here",
        "No torch build in the matrix fits this machine's Python and accelerator.",
        "Run in a container with `--in container`, or use a Python that the message names.",
    ),
    (
        "RM404",
        "Wrong usage",
        "An option has a value that it does not take.",
        "Take one of the values named, or see `./invokew --help TASK`.",
    ),
    (
        "RM405",
        "This torch has no expandable segments",
        "Its GPU allocator on ROCm cannot let segments grow, or nothing is recorded of it.",
        "Leave --expandable-segments out, or take a cell with torch 2.12 or newer; `./invokew explain` gives details.",
    ),
    (
        "RM410",
        "No RDMA adapter was found",
        "--with-rdma was given, but the host shows no adapter under /dev/infiniband.",
        "Load the adapter's driver (`ls -ln /dev/infiniband`), or leave --with-rdma out.",
    ),
    (
        "RM411",
        "Another CDI specification names the cards",
        "A second file that names the same devices makes every one of them unusable: engines refuse both.",
        "Use the file that is there, or remove it first.",
    ),
    (
        "RM412",
        "A dev container belongs to a user who is not root",
        "Files that an editor writes would belong to root, so a numeric user is needed.",
        'Run it as yourself, without sudo, or name a user: --user "$(id -u):$(id -g)".',
    ),
    (
        "RM413",
        "Refusing to overwrite a file that rocmatrix did not create",
        "The output file exists, and rocmatrix did not create it.",
        "Move it away, or give --to another place.",
    ),
    (
        "RM414",
        "The target cannot carry this run",
        "The engine that was asked for has no way to do what the run needs.",
        "Choose another target with --for, or change what is named.",
    ),
    (
        "RM420",
        "The scheduler's command is not installed",
        "Jobs are handed to Slurm by `sbatch` and to Kubernetes by `kubectl`; this machine lacks the one it takes.",
        "Submit where it is installed, such as a login node; `--dry-run` prints the files and the command.",
    ),
    (
        "RM421",
        "The scheduler did not take the job",
        "The files were written and handed over; the scheduler's own message states why it refused them.",
        "Where it cannot be reached, submit from where it can; else change what it names, such as --nodes or --cards.",
    ),
    (
        "RM422",
        "The job has no place for its results",
        "A pod's own files go with it, so results need a claim that outlives it and that all nodes can write.",
        "Name a PersistentVolumeClaim with --claim (access mode ReadWriteMany for several nodes).",
    ),
    (
        "RM423",
        "The nodes' GPUs are unknown",
        "Jobs ask for cards and groups by number, and those of the machine that submits mean nothing on another.",
        "Give --cards N (of each node) and --groups with what `stat -c %g /dev/kfd /dev/dri/renderD*` prints there.",
    ),
    (
        "RM424",
        "The scheduler cannot carry this job",
        "The scheduler has no equivalent of this option.",
        "Change what is named, or choose another way with --engine or --under.",
    ),
    (
        "RM425",
        "A node lacks what the job needs",
        "The job's script looked on the node for a program, a device node or a module, and did not find it.",
        "Load what brings the program with --modules, or choose nodes that have the device: --constraint, --partition.",
    ),
    (
        "RM426",
        "A pod has no file of this machine",
        "What pods read has to be on a claim; a path of this machine means nothing there.",
        "Put the data on a claim: --data with its path from the claim's root, such as bars/2025.csv, and --data-claim.",
    ),
    (
        "RM427",
        "No run to follow",
        "The folder that --run names is neither a finished run nor one that was begun.",
        "Name a run's folder, such as TRAINING/NAME; `ls -A TRAINING` lists unfinished ones as .NAME.partial, too.",
    ),
    (
        "RM499",
        "An unexpected error",
        "Unhandled exception: a bug in rocmatrix.",
        "Please report it as a bug, with the file that holds the traceback.",
    ),
    (
        "RM670",
        "The environment is in use",
        "Other wheels, or another lock, are to go into .venv, and a running job still loads modules from there.",
        "Let the job end or stop it; another checkout has an environment of its own, or use `--in container`.",
    ),
)
