"""RM500 to RM509: flags, recipes and the files next to a run. RM525 to RM527: benchmarks, loop.

RM59x: probes, what a resume refuses, unexplained ends.
"""

from __future__ import annotations

from trainer.runtime.codes.entry import CatalogEntry, entries

USAGE: tuple[CatalogEntry, ...] = entries(
    (
        "RM500",
        "Wrong usage",
        "The command line names an unknown command or flag, or gives a flag a value it does not take.",
        "Correct the flag that is named; the same command with `--help` lists them, and `train --help=all` every one.",
    ),
    (
        "RM501",
        "A package cannot be imported",
        "The trainer runs on torch, numpy, safetensors and tqdm; one of them is missing or broken.",
        "Install it, or run in a cell's image or in the environment that `./invokew` makes.",
    ),
    (
        "RM502",
        "No such recipe, or a file that is none",
        "What --recipe names is no recipe of the trainer and no file, or the file is no YAML of sections.",
        "Take a recipe that is named, or give the path of a file; `recipes/` shows how one is written.",
    ),
    (
        "RM503",
        "Unknown setting",
        "A recipe, or --set, names a setting that does not exist, or gives it below another section.",
        "Take the setting that is named; `train --help=all` lists every one.",
    ),
    (
        "RM504",
        "A setting does not take this value",
        "The value is of another kind than the setting, or outside its bounds.",
        "Correct the value at the named place.",
    ),
    (
        "RM505",
        "A setting is given twice",
        "Flags and --set have the same rank, so two different values for one setting contradict each other.",
        "Leave one of the two out; either wins over a recipe, and a recipe over the default.",
    ),
    (
        "RM506",
        "A layer produced NaN or infinity",
        "The guard found a layer's output that is no finite number; the batches since its last look were saved.",
        "Run `python -m trainer replay FILE` on the saved file; often a lower --learning-rate is the remedy.",
    ),
    (
        "RM507",
        "A tracker cannot be used",
        "What --track names is not installed, or refused to start.",
        "Install the named package where the trainer runs, or leave the tracker out of --track.",
    ),
    (
        "RM508",
        "The replay file cannot be used",
        "The file is missing, damaged, or was not written by the trainer's NaN guard.",
        "Give the nan-step-N.pt that the failed run named.",
    ),
    (
        "RM525",
        "No such benchmark",
        "No benchmark has this name.",
        "Name one that `python -m trainer bench --help` lists.",
    ),
    (
        "RM526",
        "The learning-rate schedule contradicts itself or the run",
        "Settings of the warm-up or the decay exclude each other, have no effect, or leave no step after the warm-up.",
        "Leave one of the named settings out, or give a shorter warm-up or a longer run.",
    ),
    (
        "RM527",
        "Best weights cannot be kept on the host here",
        "Under --parallel fsdp2 on cards the best weights stay sharded over the cards.",
        "Leave --best-on out, or use --parallel ddp.",
    ),
    (
        "RM528",
        "The adapter's products are wrong on this card",
        "Narrow products were tried in child processes: as they are, without torch's Lt library, and filled up to 64.",
        "Use --adapter none, --device cpu, or a cell of another release; --gates off trains without this check.",
    ),
    (
        "RM529",
        "The optimizer does not fit the run",
        "Muon takes the matrices of hidden layers, and like 8-bit AdamW each of them whole.",
        "Use --optimizer adamw.",
    ),
    (
        "RM590",
        "No such probe",
        "A probe was named that the smoke suite does not have.",
        "Name one that `python -m trainer smoke --list` prints.",
    ),
    (
        "RM591",
        "The checkpoint is of another run",
        "Its manifest names other settings or other data than those that this run was started with, or none at all.",
        "Move the checkpoint out of the run's folder; the one before it is used then. Or resume the run it is of.",
    ),
    (
        "RM592",
        "The unfinished run's settings cannot be used",
        "Neither run.json nor a checkpoint holds the run's settings in a form that this trainer reads.",
        "Copy the folder again from where it was written, or start a new run.",
    ),
    (
        "RM593",
        "The inputs are computed otherwise now",
        "This trainer makes other rows or other values of the same data, so a run cannot resume with them.",
        "Resume with the versions that the run's run.json names, or start a new run.",
    ),
    (
        "RM594",
        "The checkpoint holds no state of this run",
        "Its files are whole, but this network and these settings cannot resume from their content.",
        "Move the checkpoint out of the run's folder; the one before it is used then.",
    ),
    (
        "RM595",
        "A forecast is no finite number",
        "The model's weights or its scales are so large that a forecast overflows; NaN or infinity is no forecast.",
        "Look at the rows that are named, or train the model again.",
    ),
    (
        "RM598",
        "Interrupted",
        "The run was stopped by Ctrl-C or by a signal; what is left is whole: checkpoints or nothing.",
        "Start the same command again. With --resume auto it resumes where checkpoints were kept.",
    ),
    (
        "RM599",
        "An unexpected error",
        "Unhandled exception: a bug in the trainer.",
        "Please report it as a bug, with the file that holds the traceback.",
    ),
)
