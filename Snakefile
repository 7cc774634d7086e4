"""Power-of-d choices with memory: config -> notebooks -> datasets -> claims -> report -> verdict.

    snakemake --cores all                                      the study of the report
    snakemake --cores all --configfile config/smoke.yaml       every step at tiny sizes
    snakemake --cores all --configfile config/sweep-example.yaml    some of the studies on another grid
    snakemake --workflow-profile profiles/slurm                on a cluster (docs/cluster.md)

What to study is in config/, how to run it (cores, memory, reruns) in profiles/. Whether a rule runs again is decided
by contents: of the notebook, of the files of lib/ that it imports, of the report's template (all hashed in `params`,
since the times of files miss an edit that carries an older time), and of its parameters; and by the versions of the
packages that compute.
"""

import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

from snakemake.exceptions import WorkflowError

# Commands are relative, and find this interpreter and this lib/, wherever the folder lies and whoever calls.
sys.path.insert(0, str(Path(workflow.basedir) / "lib"))
os.environ["PYTHONPATH"] = os.pathsep.join([sys.path[0], os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])

from dchoices import KERNEL_CACHE
from dchoices.workflow.closure import ClosureError, closure, code_hash
from dchoices.workflow.config import ConfigError, make_plan, read
from dchoices.workflow.locks import remove_halves, take_over
from dchoices.workflow.plan import table

# A run that was killed leaves its lock; the next one takes over, unless it still lives.
if workflow.is_main_process:
    LIVING = take_over()

# --- the plan -----------------------------------------------------------------------------------------------------

if not workflow.configfiles:

    configfile: "config/paper.yaml"


try:
    for file in workflow.configfiles:
        read(os.path.relpath(file))  # refuses what Snakemake lets pass: a key given twice
    PLAN = make_plan(config, os.path.relpath(workflow.configfiles[-1]))
    MODULES = ("dchoices.datasets", "dchoices.claims", "dchoices.report", "dchoices.workflow.verdict")
    NOTEBOOKS = {study: Path("notebooks", f"{study}.ipynb") for study in PLAN.studies}
    CODE = {name: closure(name) for name in MODULES} | {study: closure(path) for study, path in NOTEBOOKS.items()}
except (ConfigError, ClosureError) as error:
    raise WorkflowError(str(error))

DATA, REPORT = PLAN.data.as_posix(), PLAN.report.as_posix()
ASKED = " ".join(PLAN.studies)
RUNS = [f"{DATA}/runs/{name}.nc" for name in PLAN.jobs]
DATASETS = [f"{DATA}/{study}.nc" for study in PLAN.studies]
TEMPLATE = f"report/{'report' if PLAN.is_whole else 'short'}.md"
PAGES = [path.as_posix() for path in PLAN.pages]
STYLE = sorted(
    str(path)
    for path in Path("report").glob("*")
    if path.is_file() and path.suffix != ".md" and path.name != "main-figure.svg"  # a copy of a result
)

# All that is computed starts in a notebook: with another version the notebooks run again, and what follows is made anew.
VERSIONS = {name: metadata.version(name) for name in ("numpy", "numba", "scipy")}

# numba and the linear algebra would each use all cores; a job is counted as one.
LIMITS = (
    "NUMBA_NUM_THREADS={threads} OMP_NUM_THREADS={threads} "
    "OPENBLAS_NUM_THREADS={threads} MKL_NUM_THREADS={threads} "
)

# CPU and wall time of a job, by the shell. Snakemake's benchmarks take 6 % of a core to watch a job, and miss the CPU
# time of its last half minute.
TIMED = " && {{ times; echo $SECONDS; }} > {log.times}"
TIMES = f"{DATA}/times"


# On the node of a cluster a job has a folder of its own, and in it a copy of the kernels that were compiled at the
# start: another processor compiles what it needs anew, and no two jobs may fill one cache. The first command is
# Snakemake's own prefix, which this one replaces.
if workflow.remote_exec:
    shell.prefix(
        'set -euo pipefail; export TMPDIR="$(mktemp -d -t dchoices-XXXXXX)"; trap \'rm -rf "$TMPDIR"\' EXIT; '
        'export NUMBA_CACHE_DIR="$TMPDIR/kernels"; mkdir "$NUMBA_CACHE_DIR"; cp -R {KERNEL_CACHE:q} "$NUMBA_CACHE_DIR"; '
    )


def job(wildcards):
    """The job that a run or a parameter file belongs to."""
    return PLAN.jobs[f"{wildcards.study}/{wildcards.part}"]


def code(name):
    """What the jobs of a notebook or module depend on, as one hash."""
    return code_hash([*CODE[name], *([NOTEBOOKS[name]] if name in NOTEBOOKS else [])])


wildcard_constraints:
    study="|".join(PLAN.studies),
    part="[^/]+",


# A second each, where a queue would take longer.
localrules:
    all,
    datasets,
    parameters,
    merge,
    verdict,


# --- the rules ----------------------------------------------------------------------------------------------------


# Every file is named: Snakemake does not miss an intermediate one, such as the run that failed after an edit.
rule all:
    input:
        RUNS,
        DATASETS,
        f"{DATA}/claims.json",
        PAGES,
        f"{DATA}/verdict.txt",
    message:
        "Everything is there"


# For `make verify`, which compares the data alone.
rule datasets:
    input:
        RUNS,
        DATASETS,
    message:
        "The datasets are there"


rule parameters:
    output:
        f"{DATA}/parameters/{{study}}/{{part}}.yaml",
    priority: 1e15  # before any run, or the order of the runs would be that of their parameter files
    params:
        text=lambda wildcards: job(wildcards).as_yaml(),
    message:
        "Parameters of {wildcards.study} {wildcards.part}"
    shell:
        "printf %s {params.text:q} > {output}.tmp && mv {output}.tmp {output}"


# The notebook is ancient: its hash in params leaves out the outputs that JupyterLab saves with it.
rule notebook:
    input:
        lambda wildcards: CODE[wildcards.study],
        notebook=ancient("notebooks/{study}.ipynb"),
        parameters=f"{DATA}/parameters/{{study}}/{{part}}.yaml",
    output:
        f"{DATA}/runs/{{study}}/{{part}}.nc",
    log:
        notebook=f"{DATA}/logs/{{study}}/{{part}}.ipynb",
        text=f"{DATA}/logs/{{study}}/{{part}}.log",
        times=f"{TIMES}/notebook/{{study}}/{{part}}.time",
    threads: 1
    priority: lambda wildcards: job(wildcards).events  # long runs first
    params:
        code=lambda wildcards: code(wildcards.study),
        versions=VERSIONS,
    message:
        "Running {wildcards.study} {wildcards.part}, progress in {log.text}"
    shell:
        LIMITS + "python -m dchoices.workflow.run_notebook {input.notebook} {input.parameters} {output}"
        " --log-notebook {log.notebook} > {log.text} 2>&1 || {{ tail -n 40 {log.text} >&2; exit 1; }}" + TIMED


rule merge:
    input:
        CODE["dchoices.datasets"],
        runs=lambda wildcards: [f"{DATA}/runs/{wildcards.study}/{part}.nc" for part in PLAN.parts(wildcards.study)],
    output:
        f"{DATA}/{{study}}.nc",
    log:
        text=f"{DATA}/logs/{{study}}/merge.log",
        times=f"{TIMES}/merge/{{study}}.time",
    threads: 1
    params:
        code=code("dchoices.datasets"),
    message:
        "Merging {wildcards.study}"
    shell:
        LIMITS + "python -m dchoices.datasets {output} {input.runs} 2>&1 | tee {log.text}" + TIMED


rule claims:
    input:
        CODE["dchoices.claims"],
        DATASETS,
    output:
        f"{DATA}/claims.json",
    log:
        text=f"{DATA}/logs/claims.log",
        times=f"{TIMES}/claims.time",
    threads: 1
    params:
        code=code("dchoices.claims"),
    message:
        "Checking the claims"
    shell:
        LIMITS + f"python -m dchoices.claims {DATA} {{output}} {ASKED} 2>&1 | tee {{log.text}}" + TIMED


rule report:
    input:
        CODE["dchoices.report"],
        TEMPLATE,
        STYLE,
        DATASETS,
        claims=f"{DATA}/claims.json",
    output:
        PAGES,
    log:
        f"{DATA}/logs/report.log",
    threads: 2  # the page and the pictures for print
    params:
        code=code("dchoices.report"),
        template=code_hash([TEMPLATE, *STYLE]),
    message:
        "Writing the report"
    shell:
        LIMITS + f"python -m dchoices.report --data {DATA} --template {TEMPLATE} --studies {ASKED} --out {REPORT}"
        " 2>&1 | tee {log}"


# Last and alone in turning red, so that the report is there to be read.
rule verdict:
    input:
        CODE["dchoices.workflow.verdict"],
        f"{REPORT}/report.html",
        f"{REPORT}/report.pdf",
        claims=f"{DATA}/claims.json",
    output:
        f"{DATA}/verdict.txt",
    log:
        f"{DATA}/logs/verdict.log",
    params:
        code=code("dchoices.workflow.verdict"),
    message:
        f"The verdict; the report is {REPORT}/report.html"
    shell:
        "python -m dchoices.workflow.verdict {input.claims} {output} 2>&1 | tee {log}"


# numba's cache is not safe against jobs that fill it together: compile first, in one process (seconds, if compiled).
# No rule, as Snakemake drops jobs below one that reruns, when they take its output as ancient (snakemake#4166), and
# reruns them all, when they do not.
onstart:
    for folder in (DATA, REPORT):
        remove_halves(Path(folder))
    print("Compiling the kernels")
    pace = shell(f"mkdir -p {TIMES} && touch {TIMES}/started && python -m dchoices.warm_up", read=True)
    new = [job for job in PLAN.jobs.values() if not Path(f"{DATA}/runs/{job.name}.nc").exists()]
    if new:
        at_once = workflow.resource_settings.cores or workflow.resource_settings.nodes  # the latter on a cluster
        print(table(PLAN, new, 1e-9 * float(pace), min(at_once, len(new))))


onsuccess:
    if Path(REPORT, "report.html").exists():
        print(f"The report is {REPORT}/report.html")


onerror:
    if Path(DATA).exists() and shutil.disk_usage(DATA).free < 2**20:  # the logs, on the same disk, could not say so
        print(f"{DATA}: No space left on device")
    print(f"Logs and executed notebooks are in {DATA}/logs")
