"""What a configuration asks for, and what it will take: events, CPU time, wall time and memory, before anything runs.

``python -m dchoices.workflow.plan config/sweep-example.yaml`` is `make plan`: it compiles the kernels if need be, and
measures how fast this machine is.
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
from collections.abc import Iterable, Sequence

from dchoices.workflow.config import ConfigError, Job, Plan, make_plan, read
from dchoices.workflow.estimates import estimated_memory, estimated_seconds

MINUTE, HOUR, DAY = 60, 3600, 86_400
HEAD = ("study", "job", "events", "CPU time")


def table(plan: Plan, jobs: Iterable[Job], pace: float, cores: int) -> str:
    """Return a line for each job, and what they take together.

    Parameters
    ----------
    plan : Plan
        The checked configuration.
    jobs : iterable of Job
        Those of its jobs that are to run.
    pace : float
        CPU time of an event on this machine, in seconds.
    cores : int
        How many jobs run at once.
    """
    jobs = list(jobs)
    memory = max(estimated_memory(job.study, job.parameters) for job in jobs)
    seconds = [estimated_seconds(job.study, job.parameters, pace) for job in jobs]
    rows = [HEAD]
    for job, cost in zip(jobs, seconds, strict=True):
        rows.append((job.study, job.part, events(job.events), duration(cost)))
    rows.append(("together", f"{len(jobs)} jobs", events(sum(job.events for job in jobs)), duration(sum(seconds))))
    wide, widest = (max(len(row[k]) for row in rows) for k in range(2))
    lines = [f"{study:{wide}}  {part:{widest}}  {number:>8}  {cost:>8}" for study, part, number, cost in rows]
    return "\n".join(
        [
            f"Profile {plan.profile}, estimated before it runs:",
            *lines,
            f"With {cores} at a time: about {duration(wall_time(seconds, cores))}, before the claims and the report",
            f"Memory: up to {memory / 1e9:.1f} GB for a job",
            f"CPU time of an event: {1e9 * pace:.3g} ns, measured now; half as much again if every core is busy",
        ]
    )


def events(number: float) -> str:
    """Return a number of events, a dash where nothing is simulated."""
    return f"{number:.2g}" if number else "-"


def duration(seconds: float) -> str:
    """Return a time in the unit that fits."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    for unit, name, most in ((MINUTE, "min", 100 * MINUTE), (HOUR, "h", 2 * DAY)):
        if seconds < most:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds / DAY:.2g} days"


def wall_time(seconds: Sequence[float], cores: int) -> float:
    """Return when the last job ends, if each core takes the longest that is left, as the workflow has it."""
    ends = [0.0] * cores
    for cost in sorted(seconds, reverse=True):
        heapq.heapreplace(ends, ends[0] + cost)
    return max(ends)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what a configuration will take; return 2 if it is refused."""
    parser = argparse.ArgumentParser(prog="python -m dchoices.workflow.plan", description=__doc__)
    parser.add_argument("config", help="YAML file, such as config/paper.yaml")
    path = parser.parse_args(arguments).config
    try:
        plan = make_plan(read(path), path)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    from dchoices import warm_up  # slow to import, and no use to a configuration that is refused

    warm_up.main()
    print(table(plan, plan.jobs.values(), warm_up.pace(), os.cpu_count() or 1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
