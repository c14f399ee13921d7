"""RM520 to RM523: devices. RM56x: ranks, kernels and compiling. RM585 to RM589: steps, feeds, host memory, torchrun."""

from __future__ import annotations

from trainer.runtime.codes.entry import CatalogEntry, entries

RANKS: tuple[CatalogEntry, ...] = entries(
    (
        "RM520",
        "The device is not here",
        "The device asked for with --device does not exist on this machine, or does not compute.",
        "Take one of the devices that are named, or --device auto.",
    ),
    (
        "RM521",
        "Out of device memory",
        "The data and the model do not fit into the memory that is free on the device.",
        "Lower --batch-size or --data-fraction, or use --device cpu.",
    ),
    (
        "RM522",
        "The number format does not compute here",
        "The format asked for with --precision failed the numeric self-test on this device, or does not exist there.",
        "Use --precision auto, which takes what passes, or --precision fp32.",
    ),
    (
        "RM523",
        "Not even one row fits",
        "Memory ran out with one row per micro-batch; there is nothing left to cut smaller.",
        "Take a smaller model (--hidden-layers) or another device, and check which other processes use the memory.",
    ),
    (
        "RM560",
        "A rank hung",
        "The watchdog found a rank in one section for longer than that section may take, and ended all ranks.",
        "Read the stacks in the folder that is named; the run resumes from its last checkpoint with --resume auto.",
    ),
    (
        "RM561",
        "No way to communicate",
        "None of the transports between the ranks passed its trial: each hung, ended or returned a wrong sum.",
        "Read the verdict of each transport above; decide by hand with --comms, or train on one card.",
    ),
    (
        "RM562",
        "This torch lacks it",
        "What was asked for is not in the installed version of torch.",
        "Choose another value for the flag that is named, or a cell with the version that is named.",
    ),
    (
        "RM563",
        "The ranks do not fit the request",
        "The number of ranks, of cards, of layers or of micro-batches does not allow this way to train in parallel.",
        "Change the number that is named.",
    ),
    (
        "RM564",
        "Started again as often as allowed",
        "The ranks ended each time, and as many restarts as --max-restarts allows are used up.",
        "Read the first error above; the run resumes from its last checkpoint with --resume auto.",
    ),
    (
        "RM565",
        "The ranks disagree",
        "The ranks were started with different settings, data or weights, so they cannot train one model.",
        "Start all ranks with the same command on the same files.",
    ),
    (
        "RM566",
        "No attention kernel is right",
        "The kernel that was asked for, or every one, returned wrong values or gradients on this card, or refused.",
        "Use --precision fp32, or take a cell with another torch; the kernels and their errors are named.",
    ),
    (
        "RM567",
        "Cannot compile",
        "torch.compile fails here, or what it compiles computes something else than the model does.",
        "Use --compile auto or off.",
    ),
    (
        "RM568",
        "Another rank ended",
        "This rank waited for another one, and the connection broke: that one was killed, or ended with an error.",
        "Read the error of the rank that ended first; this one's is its consequence.",
    ),
    (
        "RM569",
        "Out of memory in a step that cannot be rolled back",
        "Ranks that hold parts of one model wait for each other within a step, so no rank can roll it back.",
        "Start the same command with --resume auto: it resumes from its last checkpoint with half the micro-batch.",
    ),
    (
        "RM585",
        "Steps cannot be taken that way here",
        "Whole steps in one launch fit some networks and devices only, and are compared with steps by autograd.",
        "Give --step auto, which takes what is possible and reports why, or --step eager.",
    ),
    (
        "RM586",
        "The rows do not fit on the device",
        "Weights, activations and gradients need memory in addition to the rows.",
        "Give --feed auto, which chooses, --feed host or --feed mapped.",
    ),
    (
        "RM587",
        "Out of host memory",
        "The machine, or the limit this process runs under, has no memory left for the rows and what is made of them.",
        "Give --feed mapped, which keeps rows on disk, or a smaller --data-fraction, --chunk-size or --batch-size.",
    ),
    (
        "RM588",
        "The launcher was killed",
        "The process that starts and watches the ranks was ended by a signal. Ranks take a checkpoint and end, too.",
        "Start the same command with --resume auto.",
    ),
)
