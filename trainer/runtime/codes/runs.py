"""RM524 and RM530 to RM559: the loss, a run's folder, its model, its checkpoints and comparing runs."""

from __future__ import annotations

from trainer.runtime.codes.entry import CatalogEntry, entries

RUNS: tuple[CatalogEntry, ...] = entries(
    (
        "RM524",
        "The run's data are needed",
        "Losses are measured on the very rows that the run held out, so its data must be there, byte for byte.",
        "Give the file that the run was trained on with --data.",
    ),
    (
        "RM530",
        "The loss is not a finite number",
        "Training diverged: the loss became infinite or not a number.",
        "Lower --learning-rate; compare with --device cpu where it still diverges on a GPU.",
    ),
    (
        "RM540",
        "The run already exists",
        "A run is never overwritten: a folder of this name, or its unfinished twin, is in the output folder.",
        "Choose another name with --run; choose another folder with --output, or move the one that is there away.",
    ),
    (
        "RM541",
        "Permission denied",
        "The operating system does not let this user read or write the named path.",
        "Correct the permissions of the named path, or give another one.",
    ),
    (
        "RM542",
        "The file system is read-only",
        "The output folder cannot be written by anyone; in a container its mount may be read-only.",
        "Mount it writable, or choose another folder with --output.",
    ),
    (
        "RM543",
        "The disk is full",
        "A file could not be written because no space was left; unfinished files were removed.",
        "Free space at the named place, or choose another folder with --output.",
    ),
    (
        "RM544",
        "Not a folder",
        "A part of the output path is a file.",
        "Give another path; --output names the folder that is written.",
    ),
    (
        "RM545",
        "The reader of the output has ended",
        "The program that read the trainer's standard output ended first.",
        "Start the run again and keep its reader alive, or write the output to a file.",
    ),
    (
        "RM546",
        "No usable model folder",
        "What --model names is no folder of a finished run, or its metadata.json is damaged or of another version.",
        "Give the folder TRAINING/<run> of a finished run, made by this version of the trainer.",
    ),
    (
        "RM547",
        "The model's file is damaged",
        "The bytes of the file are not those whose SHA-256 metadata.json records.",
        "Copy the run's folder again, or train again from its recipe.yaml.",
    ),
    (
        "RM548",
        "The model needs other features",
        "The model was trained on features that this version of the trainer does not compute, or computes otherwise.",
        "Use the version of the trainer that metadata.json names under versions.",
    ),
    (
        "RM549",
        "The model cannot be exported as ONNX",
        "A package that torch's exporter needs is not installed, or the exporter refused the network.",
        "Install onnx and onnxscript where the trainer runs, or leave --export onnx out.",
    ),
    (
        "RM550",
        "No such unfinished run",
        "The run named with --resume has no unfinished folder in the output folder.",
        "Name one that is listed, or use --resume auto, which starts anew where there is none.",
    ),
    (
        "RM551",
        "The unfinished run is another one",
        "A setting that decides the weights, or the data, differs from those the run was started with.",
        "Leave the setting out (the run's own is used then), or start a new run.",
    ),
    (
        "RM552",
        "A checkpoint is damaged",
        "A file of it is missing, cut off or changed: its checksum is not the one that was written.",
        "Nothing: the checkpoint before it is used, or the run begins anew. If it happens again, check the disk.",
    ),
    (
        "RM553",
        "A checkpoint could not be written",
        "The disk is full or failed. The run continues, and the last good checkpoint stays as it is.",
        "Free space at the named place; the next checkpoint is tried when it is due.",
    ),
    (
        "RM554",
        "Stopped with a checkpoint; resume with --resume auto",
        "The run was asked to end (SIGTERM) and kept a checkpoint; the exit status is 75.",
        "Start the same command with --resume auto.",
    ),
    (
        "RM555",
        "The run is in progress",
        "Another process has this run open; two would overwrite each other's checkpoints.",
        "Wait for it, end it, or choose another name with --run.",
    ),
    (
        "RM556",
        "Nothing to compare",
        "A run's log of batches is not there or cannot be read; it is written epoch by epoch.",
        "Give the folders of two runs that have finished an epoch, as in TRAINING/one TRAINING/two.",
    ),
    (
        "RM557",
        "Settings of the network do not fit",
        "A transformer needs blocks, norms by layer and has heads that share its width; only it has attention.",
        "Change one of the settings that are named.",
    ),
    (
        "RM558",
        "An attention kernel is wrong",
        "Its output or gradients on this device are not those of attention in fp64, so the next kernel is used.",
        "Nothing: the run uses a correct kernel. Report it to the maker of this torch build, with the figures.",
    ),
    (
        "RM559",
        "Memory ran out within the optimizer's step",
        "It was available just before the step. The state that the step left is discarded; checkpoints are intact.",
        "Start the same command with --resume auto and a smaller --micro-batch; check for other processes on the card.",
    ),
    (
        "RM732",
        "A callback cannot be loaded",
        "--callback names a file or module, a colon and a class; the class is a subclass of trainer.engine.callbacks."
        "Callback and is made without arguments. A file is loaded alone: it cannot import the files next to it.",
        "Correct what is named; docs/training.md has an example. To resume, give --callback again or leave it out.",
    ),
    (
        "RM733",
        "A callback failed",
        "A callback that was given with --callback raised an exception. The run ends; its checkpoints stay.",
        "Correct the line that is named, then start the same command with --resume auto.",
    ),
    (
        "RM734",
        "A callback changed the run",
        "It changed what a later step depends on, and its class does not state that. The run ends; checkpoints stay.",
        "Set changes_results = True in the class, or leave the run as it is: change a copy, call model.train() again.",
    ),
    (
        "RM735",
        "A callback would make the ranks differ",
        "It changes results (changes_results) and is on rank 0 alone, so the other ranks would train another model.",
        "Set all_ranks = True in the class and do the same on each rank, or train on one.",
    ),
)
