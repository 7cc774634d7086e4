"""A SLURM cluster of one node on this machine: Debian's slurmctld, slurmd and munge, without accounting."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

PACKAGES = "slurmctld slurmd slurm-client munge"
PARTITION = "study"  # not the default one: a job gets there only if it asks to
PATIENCE = 60  # seconds for what takes one or two

CONFIGURATION = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
MinJobAge=3600
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory}
PartitionName=other Nodes=ALL Default=YES
PartitionName={partition} Nodes=ALL
"""


@dataclass(frozen=True)
class Job:
    """What squeue says of a job, finished or not.

    Attributes
    ----------
    id, state, partition, limit, memory, comment : str
        The limit is of time; the comment is the plugin's, with rule and wildcards.
    """

    id: str
    state: str
    partition: str
    limit: str
    memory: str
    comment: str


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs.

    Attributes
    ----------
    folder : Path
        With its configuration, state and logs.
    environment : dict
        Variables by which its commands, and programs that call them, find it.
    """

    folder: Path
    environment: dict

    def run(self, *command):
        """Return what a command of SLURM prints."""
        ran = subprocess.run(command, env=os.environ | self.environment, capture_output=True, text=True)
        assert ran.returncode == 0, (command, ran.stderr)
        return ran.stdout

    def jobs(self):
        """Return every job of the last minutes."""
        lines = self.run("squeue", "--states=all", "--noheader", "--format=%i|%T|%P|%l|%m|%k").splitlines()
        return [Job(*line.split("|")) for line in lines]

    def wait_for(self, condition):
        """Wait until a condition holds; if it does not come to that, show the logs."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            logs = [f"{path.name}:\n{path.read_text()[-3000:]}" for path in self.folder.glob("*.log")]
            assert time.monotonic() < deadline, "\n".join(logs)
            time.sleep(0.2)


@contextmanager
def one_node(folder):
    """Run a cluster for as long as the context lasts.

    Parameters
    ----------
    folder : Path
        Empty; nothing is written outside of it. Users find the cluster by the environment.

    Yields
    ------
    Cluster
    """
    environment = configure(folder)
    cluster = Cluster(folder, environment)
    munge = [f"--{name}-file={folder}/munge.{name}" for name in ("key", "pid", "log", "seed")]
    with ExitStack() as daemons:

        def start(*command):
            daemons.enter_context(running(command, folder, os.environ | environment))

        start("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", *munge)  # force: as root too
        cluster.wait_for((folder / "munge.socket").exists)
        start("slurmctld", "-D")
        start("slurmd", "-D")
        cluster.wait_for(lambda: "idle" in cluster.run("sinfo", "--noheader", "--format=%t"))
        try:
            yield cluster
        finally:
            cluster.run("scancel", f"--user={getpass.getuser()}")
            cluster.wait_for(lambda: not cluster.run("squeue", "--noheader"))


def configure(folder):
    """Write what the daemons read; return the environment by which they and others find it."""
    for name in ("state", "spool", "bin"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o400)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            folder=folder,
            host=socket.gethostname().split(".")[0],
            ports=free_ports(2),
            user=getpass.getuser(),
            cpus=os.cpu_count(),
            memory=psutil.virtual_memory().total >> 20,
            partition=PARTITION,
        )
    )
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin"])
    for name in ("munged", "slurmctld", "slurmd", "sbatch"):
        if not shutil.which(name, path=path):
            raise FileNotFoundError(f"{name}: not installed; these tests need Debian's {PACKAGES}")
    # The plugin takes all that begins with SLURM_ from the environment of a job's srun, SLURM_CONF too.
    srun = folder / "bin" / "srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={configuration} exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    return {"SLURM_CONF": str(configuration), "PATH": os.pathsep.join([str(srun.parent), path])}


def free_ports(number):
    """Return ports at which nobody listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def running(command, folder, environment):
    """Run a daemon, with what it prints in a log, and end it."""
    with (folder / f"{command[0]}.log").open("w") as log:
        process = subprocess.Popen(
            [shutil.which(command[0], path=environment["PATH"]), *command[1:]],
            env=environment, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=PATIENCE)
