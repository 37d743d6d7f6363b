"""Runs targets of the Makefile one after the other and says how long each took: steps.py TARGET=MINUTES ...

The minutes are a budget: a step that takes longer is pointed out, and does not fail. Nothing is tried after
the first step has failed, since it prepares the others; with --stop, nothing after any that failed.
"""

import argparse
import os
import subprocess
import sys
import time


def run(target, minutes):
    """One target; whether it passed, its seconds, and a remark about its budget."""
    print(f"=== {target} (budget {minutes:g} min)", flush=True)
    started = time.monotonic()
    done = subprocess.run([os.environ.get("MAKE", "make"), "--no-print-directory", target], stdin=subprocess.DEVNULL, check=False)
    seconds = time.monotonic() - started
    passed = done.returncode == 0
    remark = f"OVER ITS BUDGET of {minutes:g} min" if seconds > 60 * minutes else ""
    print(f"=== {target}: {'passed' if passed else 'FAILED'} in {seconds:.0f} s {remark}".rstrip(), flush=True)
    return passed, seconds, remark


def main():
    """Exit status 0 if every step passed."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--stop", action="store_true", help="nothing after a step that failed")
    words.add_argument("steps", nargs="+", metavar="TARGET=MINUTES")
    arguments = words.parse_args()

    rows = []
    for target, minutes in (step.split("=") for step in arguments.steps):
        if rows and not all(row[1] for row in (rows if arguments.stop else rows[:1])):
            break
        rows.append((target, *run(target, float(minutes))))

    print()
    for target, passed, seconds, remark in rows:
        print(f"{target:<14} {'passed' if passed else 'FAILED'} {seconds:7.0f} s  {remark}".rstrip())
    for step in arguments.steps[len(rows) :]:
        print(f"{step.split('=')[0]:<14} not tried")
    print(f"{'in all':<21} {sum(row[2] for row in rows):7.0f} s")
    failed = sum(not row[1] for row in rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
