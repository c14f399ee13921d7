"""Decision on the gates of a run, and what is used instead of what fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from trainer.config.sections.decoder import DecoderConfig
from trainer.config.train import TrainConfig
from trainer.device.accelerator import Accelerator
from trainer.device.precision import candidate
from trainer.distributed.collectives import Ranks
from trainer.run.gates import cache, child
from trainer.run.gates.child import Verdict
from trainer.run.gates.subject import ADAPTER, ATTENTION, CANARY, COMPILE, KERNELS, NF4, PRECISION, Subject, subject_of
from trainer.run.plan import rows_tried
from trainer.run.repeated_faults.remedy import LADDER, Treatment
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say

HALVES = ("bf16", "fp16")
WIDE_RANK = 64  # of an adapter's products where narrow ones fail: the tile of hipBLASLt that reads past them
PLAIN_BLAS, PADDED = "adapter, BLAS without its Lt library", f"adapter, rank filled up to {WIDE_RANK}"


@dataclass(frozen=True, kw_only=True)
class Gates:
    """Outcome of a run's gates. `why_not`: why none was tried; `choices`: what is used, by the gate's name.

    plain_blas: torch is to leave its Lt library. padded: rank of an adapter's products, 0 for its own.
    """

    verdicts: tuple[Verdict, ...] = ()
    choices: Mapping[str, str] = field(default_factory=dict)
    why_not: str = ""
    plain_blas: bool = False
    padded: int = 0

    def fault(self, gate: str) -> str:
        """Return why a gate failed; empty where it did not, or was not tried."""
        return next((each.why for each in self.verdicts if each.gate == gate and each.failed), "")

    def refusals(self) -> dict[str, str]:
        """Return attention kernels by name, "compile" and "triton", that are not to be used, and why."""
        found = {kernel: self.fault(ATTENTION + kernel) for kernel in KERNELS}
        triton = self.fault(CANARY)
        found |= {"triton": triton, "compile": triton or self.fault(COMPILE)}
        return {name: f"its gate failed: {why}" for name, why in found.items() if why}

    @property
    def dense_nf4(self) -> bool:
        """Whether 4-bit weights are to be held dequantised, by the host's values."""
        return bool(self.fault(NF4))

    @property
    def quantises(self) -> bool:
        """Whether the card was seen to give the host's 4-bit codes."""
        return any(each.gate == NF4 and each.status == child.PASSED for each in self.verdicts)

    def facts(self) -> dict[str, Any]:
        """Return what metadata.json holds."""
        return {
            each.gate: {**each.facts(), **({"used": self.choices[each.gate]} if each.gate in self.choices else {})}
            for each in self.verdicts
        }

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Gates:
        """Return the gates that `dataclasses.asdict` made `content` of, as ranks pass them on."""
        return cls(**{**content, "verdicts": tuple(Verdict(**each) for each in content["verdicts"])})


def pass_gates(
    config: TrainConfig,
    planned: Mapping[str, Any] | None,
    accelerator: Accelerator,
    treatment: Treatment,
    bootstrap: Ranks,
) -> Gates:
    """Try what the run relies on, in child processes of rank 0, and report it. A collective.

    Args:
        planned: what the network's plan of memory takes, see `NetworkSpec.planned`; None for one that is no decoder.

    Raises:
        TrainerError: RM528 where an adapter's products fail in every way.
    """
    names, why_not = gates_for(config, accelerator)
    if not names:
        return Gates(why_not=why_not)

    def here() -> dict[str, Any]:
        subject = subject_of(
            planned,
            rows=rows_tried(config),
            device=accelerator.device,
            precision=candidate(config.compute.precision, accelerator),
        )
        trier = Trier(accelerator=accelerator, deterministic=not may_vary(config), plain_blas=treatment.remedies > 0)
        found = decided(names, subject, trier)
        report(found)
        return asdict(found)

    return Gates.of(bootstrap.run_on_main(here))


def may_vary(config: TrainConfig) -> bool:
    """Return whether kernels are allowed whose results differ from run to run."""
    return isinstance(config.model, DecoderConfig) and config.model.fast == "nondeterministic"


def gates_for(config: TrainConfig, accelerator: Accelerator) -> tuple[list[str], str]:
    """Return the names of the gates that a run needs, or none and why.

    A run that asks for nothing of all that pays nothing: tables in fp32 start as before.
    """
    requested = config.compute.gates
    if requested == "off":
        return [], "--gates off"
    if requested == "auto" and accelerator.kind == "cpu":
        return [], "auto: tried on cards"
    names = [PRECISION] if candidate(config.compute.precision, accelerator) in HALVES else []
    model, compiles = config.model, config.compute.compile != "off"
    if isinstance(model, DecoderConfig):
        names += [ADAPTER] if model.adapter.adapter in ("lora", "qlora") else []
        names += [NF4] if model.adapter.adapter == "qlora" else []
        fast = model.fast != "off" and config.distributed.parallel == "ddp"
        names += [ATTENTION + kernel for kernel in KERNELS] if fast else []
        compiles = compiles or fast
    names += [CANARY, COMPILE] if compiles else []
    return names, "" if names else "nothing that has a gate is used"


@dataclass(frozen=True, kw_only=True)
class Trier:
    """Trial of gates: the card, the kernels and the BLAS that it uses."""

    accelerator: Accelerator
    deterministic: bool = True
    plain_blas: bool = False

    def tried(self, names: Sequence[str], subject: Subject) -> list[Verdict]:
        """Return a verdict for each gate: an earlier run's where it is kept, else of a child process."""
        how: dict[str, Any] = {"deterministic": self.deterministic, "plain_blas": self.plain_blas}
        keys = {name: cache.key_of(name, subject, self.accelerator, how) for name in names}
        folder = cache.folder_of()
        known = {name: found for name in names if (found := cache.read(keys[name], folder))}
        left = [name for name in names if name not in known]
        environment = dict(LADDER[0].environment) if self.plain_blas else {}
        fresh = child.tried(left, subject, environment=environment, **how) if left else []
        cache.write(keys, fresh, folder)
        known |= {each.gate: each for each in fresh}
        return [known[name] for name in names]


def decided(names: Sequence[str], subject: Subject, trier: Trier) -> Gates:
    """Try the gates and return them with what is used: where the number format fails, the others are tried in fp32.

    Args:
        names: of the gates, as `gates_for` returns them.
    """
    verdicts = {each.gate: each for each in trier.tried(names, subject)}
    choices: dict[str, str] = {}
    if PRECISION in verdicts and verdicts[PRECISION].failed:
        choices[PRECISION], subject = "fp32", replace(subject, precision="fp32")
        rest = [name for name in names if name != PRECISION]
        verdicts |= {each.gate: each for each in (trier.tried(rest, subject) if rest else [])}
    gates = Gates(verdicts=tuple(verdicts.values()), choices=choices | plain_choices(verdicts))
    return with_adapter(gates, subject, trier) if gates.fault(ADAPTER) else gates


def plain_choices(verdicts: Mapping[str, Verdict]) -> dict[str, str]:
    """Return what is used instead of what failed, of the gates whose plain way needs no trial.

    Args:
        verdicts: by the gate's name.
    """
    plain = {NF4: "the weights dequantised on the host, held in the products' format", CANARY: "nothing of Triton's"}
    plain |= {COMPILE: "eager code"} | {ATTENTION + kernel: "the kernels that pass" for kernel in KERNELS}
    return {name: words for name, words in plain.items() if name in verdicts and verdicts[name].failed}


def with_adapter(gates: Gates, subject: Subject, trier: Trier) -> Gates:
    """Return the gates with the first way in which an adapter's products are right.

    Raises:
        TrainerError: RM528 where there is none.
    """
    plain = replace(trier, plain_blas=True)
    ways = [] if trier.plain_blas else [(PLAIN_BLAS, subject)]
    ways.append((PADDED, replace(subject, padded=WIDE_RANK)))
    verdicts = gates.verdicts
    for name, changed in ways:
        (found,) = plain.tried([ADAPTER], changed)
        verdicts = (*verdicts, replace(found, gate=name))
        if found.status == child.PASSED:
            used = {ADAPTER: name.partition(", ")[2]}
            return replace(
                gates, verdicts=verdicts, choices={**gates.choices, **used}, plain_blas=True, padded=changed.padded
            )
    why = "; ".join(f"{each.gate}: {each.why}" for each in verdicts if each.gate.startswith(ADAPTER))
    raise TrainerError("RM528", what=f"products of rank {subject.rank} fail on {trier.accelerator.name}", why=why)


def treated_by(gates: Gates, treatment: Treatment) -> Treatment:
    """Return the treatment with BLAS without its Lt library where the adapter's gate chose that."""
    if not gates.plain_blas or treatment.remedies:
        return treatment
    return replace(treatment, remedies=1, reason=f"the adapter's gate failed: {gates.fault(ADAPTER)}")


def report(gates: Gates) -> None:
    """Print what the gates came to: one line for those that passed, one for each of the others."""
    emit("gates", **{"gates": gates.facts()})
    passed = [each for each in gates.verdicts if each.status == child.PASSED]
    if passed:
        kept = sum(bool(each.cached) for each in passed)
        taken = f"{sum(each.seconds for each in passed if not each.cached):.1f} s" + (f", {kept} kept" if kept else "")
        say(f"gates   passed in {taken}: {', '.join(each.gate for each in passed)}")
    for each in gates.verdicts:
        if each.failed:
            used = f"; used: {gates.choices[each.gate]}" if each.gate in gates.choices else ""
            day = f" (found on {each.cached})" if each.cached else ""
            say(f"gate    {each.gate} failed: {each.status}: {each.why}{day}{used}")
        elif each.status != child.PASSED:
            say(f"gate    {each.gate} {each.status}: {each.why}")
