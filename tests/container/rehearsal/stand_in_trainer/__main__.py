"""Plays a scenario: the events that the trainer's smoke and train send, on the card nodes that this container has.

The scenario lies in the run folder, which the host mounts: {"gfx", "card", "probes": {name: status}, "omit": [names],
"pause": name, "cut": name, "status": n, "silent": [cards], "unnamed": true, "moved": [addresses]}.
Nothing of it is measured: SIMULATED.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ.get("REHEARSAL_FOLDER", "/training"))
DEVICES = Path(os.environ.get("REHEARSAL_DEVICES", "/dev"))
PASSES = ("pass", "not-applicable")


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def cards():
    """Return the cards whose nodes this container was given; none without the interface that all share."""
    nodes = sorted(node.name for node in (DEVICES / "dri").glob("renderD*")) if (DEVICES / "kfd").exists() else []
    return [f"card {number} ({node})" for number, node in enumerate(nodes)]


def smoke(scene, named):
    probes = json.loads((Path(__file__).parent / "probes.json").read_text())
    chosen = [p for p in probes if not named or {p["probe"], p["part_of"]} & set(named)]
    statuses = [played(scene, probe) for probe in chosen if probe["probe"] not in scene.get("omit", ())]
    failed = [status for status in statuses if status not in PASSES]
    if "moved" in scene:
        emit("health", moved=scene["moved"], unknown=[], words="simulated", cards={}, seconds=0.0)
    emit("smoke", passed=statuses.count("pass"), failed=len(failed))
    return scene.get("status", 1 if failed or not statuses else 0)


def played(scene, probe):
    """Send the verdict of one probe, after what the scenario does to it; return its status."""
    name, present = probe["probe"], cards()
    if name == scene.get("pause"):
        (FOLDER / "paused").touch()
        until = time.monotonic() + 120
        while (FOLDER / "paused").exists() and time.monotonic() < until:
            time.sleep(0.05)
    if name == scene.get("cut"):
        print(json.dumps({"event": "probe", "probe": name, "status": "pass"})[:30], end="", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    status = scene.get("probes", {}).get(name) or ("pass" if len(present) >= probe["cards"] else "no-device")
    device = {"kind": "rocm", "name": f"SIMULATED {scene['card']}", "arch": scene["gfx"]} if present else None
    fields = {"device": device, "versions": {"torch": "0 (stand-in)"}, "seconds": 0.0, "summary": "simulated"}
    fields |= {"numbers": [{"name": "fp16", "value": 50.0, "unit": "TFLOP/s"}]} if name == "blas" else {}
    if probe["cards"] > 1 and present:
        fields |= {"present": present, "cards": present_that_answer(scene, present)}
    emit("probe", probe=name, status=status, **fields)
    return status


def present_that_answer(scene, present):
    return [card for number, card in enumerate(present) if number not in scene.get("silent", ())]


def train(scene):
    found = [{"kind": "rocm", "name": f"SIMULATED {scene['card']}", "arch": scene["gfx"]}] if cards() else [None]
    emit("start", device=found[0], data={"source": "file"})
    emit("epoch", rows_per_second=1000.0)
    emit("done", run="rehearsed", best={"validation_loss": 1.0})
    return scene.get("status", 0)


def main(argv):
    scene = json.loads((FOLDER / "scenario.json").read_text())
    named = [word.partition("=")[2] for word in argv[1:] if word.startswith("--probe=")]
    return {"smoke": lambda: smoke(scene, named), "train": lambda: train(scene)}[argv[0]]()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
