"""Change the code that decides, one mutant at a time, and see that a test fails.

    python -m benchmarks.mutants                              # every module of modules.toml
    python -m benchmarks.mutants --module rocmatrix/matrix/rule.py
    python -m benchmarks.mutants --named                      # the mutants written by hand in named.toml
    python -m benchmarks.mutants --stale                      # modules whose score is of another source

mutmut makes the mutants and runs them in a copy of the checkout, each in a fork. Values computed before the fork can
hide a mutant: `--fresh` tries survivors again, each in a process of its own with every test of its module. What still
survives is equal to the original with a reason in equal.toml, or a hole. Results: benchmarks/results/mutants.json.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.mutants import named, plan, report, trial


def main() -> int:
    """Run what is asked for, record it, and return 1 where a score is too low or a named mutant lives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", action="append", default=[], help="a module of modules.toml; may be repeated")
    parser.add_argument("--named", action="store_true", help="run the mutants of named.toml")
    parser.add_argument("--stale", action="store_true", help="list the modules whose recorded score is outdated")
    parser.add_argument("--again", action="store_true", help="try survivors and changed functions alone")
    parser.add_argument("--reasons", action="store_true", help="apply equal.toml to the record, and run nothing")
    parser.add_argument("--fresh", action="store_true", help="try survivors again, each in a process of its own")
    options = parser.parse_args()
    if options.stale:
        print("\n".join(report.stale(report.recorded())) or "every score is of the source as it is")
        return 0
    if options.reasons:
        report.write(report.reapply(report.recorded()))
    elif options.named:
        report.keep_named(named.run_all())
    else:
        for module in plan.chosen(options.module):
            only = report.to_try_again(module) if options.again else None
            report.keep_module(trial.run(module, fresh=options.fresh, only=only))
    print(report.table(report.recorded()))
    return 0 if report.good(report.recorded()) else 1


if __name__ == "__main__":
    sys.exit(main())
