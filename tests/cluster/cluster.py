"""A Slurm cluster on one machine: a head with munged and slurmctld, and nodes with a slurmd each.

It is made in network, mount, hostname and process namespaces of its own, in which it takes addresses and mounts
as it likes. A node has its own in turn: its network interface, hostname, processes, /tmp, /run and
/dev/shm. So what a job leaves on a node is seen from here, and SIGKILL of the node's first process is
a host that crashes.
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from case_table import PATIENCE, Failed, Skipped, call, expect, until

NODES = ("n1", "n2", "n3", "n4")
CPUS = 2  # that Slurm takes each node to have
KILL_WAIT = 5  # seconds from SIGTERM to SIGKILL; slurmd takes no less
MOST_TO_CLEAN = KILL_WAIT + 1  # seconds until nothing of a job is left
MOUNTS = {"tmp": "/tmp", "shm": "/dev/shm", "run": "/run"}  # mount writes to /run, so it is the last
ROOT = pathlib.Path(__file__).resolve().parents[2]
UID = 4242  # of who submits the jobs; data belong to root

CONFIG = """
ClusterName=batchwright
SlurmctldHost=head({head})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={work}/munge/socket,cred_expire=5
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/%n/spool
SlurmctldPidFile={work}/slurmctld.pid
SlurmdPidFile={work}/%n/slurmd.pid
SlurmdParameters=config_overrides
SlurmdDebug=verbose
SlurmdTimeout=10
KillWait={kill_wait}
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PropagateResourceLimits=NONE
NodeName={nodes} CPUs={cpus} RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def said(*words):
    """What a program prints, whether or not it succeeds."""
    return subprocess.run([str(word) for word in words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=PATIENCE).stdout


class Node:
    """A host: slurmd, and what it starts, in namespaces of their own."""

    def __init__(self, name, number, cluster):
        self.name, self.address = name, f"10.77.0.{number + 10}"
        self.home = cluster.work / name
        self.cluster = cluster
        self.outside = self.init = None
        for folder in (*MOUNTS, "spool", "data"):
            (self.home / folder).mkdir(parents=True)
        for folder in ("tmp", "shm"):
            (self.home / folder).chmod(0o1777)
        # Where the project lies in a folder of which the node has its own, it is seen there, too.
        self.project = [self.home / own / ROOT.relative_to(there)
                        for own, there in MOUNTS.items() if ROOT.is_relative_to(there)]
        for place in self.project:
            place.mkdir(parents=True)
        call("ip", "netns", "add", name)
        call("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns",
             name)
        call("ip", "link", "set", f"to-{name}", "master", "switch", "up")
        call("ip", "-n", name, "address", "add", f"{self.address}/24", "dev", "eth0")
        for link in ("eth0", "lo"):
            call("ip", "-n", name, "link", "set", link, "up")

    def boot(self):
        """The first process waits for slurmd, and for all that loses its parent."""
        mounts = "".join(f"mount --bind {ROOT} {place}\n" for place in self.project)
        mounts += "".join(f"mount --rbind {self.home / own} {there}\n"
                          for own, there in {"data": self.cluster.data, **MOUNTS}.items())
        script = f"""set -e
hostname {self.name}
{mounts}slurmd -D -N {self.name} -f {self.cluster.config}
exit 1
"""
        with (self.cluster.logs / self.name).open("a") as log:
            self.outside = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.name}", "unshare", "--mount", "--pid", "--uts",
                 "--fork", "--kill-child", "--mount-proc", "sh", "-c", script],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        children = pathlib.Path(f"/proc/{self.outside.pid}/task/{self.outside.pid}/children")
        self.init = until(lambda: children.read_text().split(), f"{self.name}'s first process")[0]

    def kill(self):
        """All of it at once. /tmp and the rest stay as they are, as on a disk."""
        os.kill(int(self.init), signal.SIGKILL)
        self.outside.wait()

    def unplug(self):
        """Peers hear nothing more, not even that connections were closed."""
        call("ip", "link", "set", f"to-{self.name}", "down")

    def plug(self):
        call("ip", "link", "set", f"to-{self.name}", "up")

    def processes(self):
        """Process number and command line of all except the first and slurmd."""
        here, found = f"/proc/{self.init}/ns/pid", {}
        try:
            space = os.readlink(here)
        except OSError:
            return found  # killed
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().decode().split("\0")
                if os.readlink(entry / "ns/pid") == space and words[0]:
                    found[int(entry.name)] = " ".join(words).strip()
            except OSError:  # it ended meanwhile
                continue
        return {pid: line for pid, line in found.items()
                if pid != int(self.init) and not line.startswith("slurmd -D")}

    def running(self, program):
        """Numbers of the processes of a program or script."""
        return [pid for pid, line in self.processes().items()
                if any(word.rpartition("/")[2] == program for word in line.split()[:2])]

    def files(self):
        """With folders, but without the project's. Some may go while they are counted."""
        found = [os.path.join(at, name) for folder in MOUNTS
                 for at, folders, files in os.walk(self.home / folder) for name in folders + files]
        return [path for path in found
                if not any(place.is_relative_to(path) for place in self.project)]

    def clear(self):
        """As a boot does, or job_container/tmpfs with a job's end."""
        for path in sorted(self.files(), reverse=True):  # what is in a folder comes before it
            path = pathlib.Path(path)
            path.rmdir() if path.is_dir() else path.unlink()

    def leftovers(self):
        """All that a job may have forgotten here."""
        return [*self.processes().values(), *self.files()]

    def ours(self):
        """Those of its processes that are not Slurm's, which may still wait for another node."""
        return [line for line in self.processes().values()
                if line.split()[0].rpartition("/")[2] not in ("slurmstepd:", "srun", "bash")]


class Cluster:
    """From start() to stop(), with four nodes."""

    def __init__(self, work):
        self.work, self.config = work, work / "slurm.conf"
        self.logs, self.data = work / "log", work / "data"
        self.head = "10.77.0.1"
        self.started = []  # munged and slurmctld
        self.nodes = []

    def start(self):
        for folder in ("log", "munge", "state", "data"):
            (self.work / folder).mkdir()
        self._network()
        self._user()
        self._munge()
        self.config.write_text(CONFIG.format(work=self.work, head=self.head, kill_wait=KILL_WAIT,
                                             nodes=",".join(NODES), cpus=CPUS))
        os.environ["SLURM_CONF"] = str(self.config)
        for name in [name for name in os.environ
                     if name.startswith("SLURM") and name != "SLURM_CONF"]:
            del os.environ[name]
        # sbatch passes it on from the login node; on the nodes there is no such folder.
        os.environ["XDG_RUNTIME_DIR"] = f"/run/user/{UID}"
        self._run("slurmctld", "-D", "-f", self.config)
        for number, name in enumerate(NODES, 1):
            self.nodes.append(Node(name, number, self))
            self.nodes[-1].boot()
        self.wait_until_idle()

    def _network(self):
        socket.sethostname("head")
        call("mount", "-t", "tmpfs", "none", "/run")
        call("ip", "link", "set", "lo", "up")
        call("ip", "link", "add", "switch", "type", "bridge")
        call("ip", "address", "add", f"{self.head}/24", "dev", "switch")
        call("ip", "link", "set", "switch", "up")
        hosts = ["127.0.0.1 localhost", f"{self.head} head"] + [
            f"10.77.0.{number + 10} {name}" for number, name in enumerate(NODES, 1)]
        (self.work / "hosts").write_text("\n".join(hosts) + "\n")
        call("mount", "--bind", self.work / "hosts", "/etc/hosts")

    def _user(self):
        """One more, who may do nothing but submit jobs and read."""
        self.work.chmod(0o711)
        for file, line in (("passwd", f"trainer:x:{UID}:{UID}::/tmp:/bin/sh"),
                           ("group", f"trainer:x:{UID}:")):
            here = pathlib.Path("/etc") / file
            (self.work / file).write_text(f"{here.read_text().rstrip()}\n{line}\n")
            call("mount", "--bind", self.work / file, here)

    def _munge(self):
        """With a key, and a socket that all nodes see, of its own."""
        at = self.work / "munge"
        (at / "key").write_bytes(os.urandom(1024))
        (at / "key").chmod(0o600)
        self._run("munged", "--force", "--foreground", f"--key-file={at / 'key'}",
                  f"--socket={at / 'socket'}", f"--pid-file={at / 'pid'}",
                  f"--log-file={self.logs / 'munged.log'}", f"--seed-file={at / 'seed'}")
        until((at / "socket").exists, "munged")

    def _run(self, *words):
        with (self.logs / words[0]).open("w") as log:
            self.started.append(subprocess.Popen([str(word) for word in words], stdout=log,
                                                 stderr=log, stdin=subprocess.DEVNULL))

    def node(self, name):
        return self.nodes[NODES.index(name)]

    def states(self):
        """Of the nodes; empty while slurmctld does not answer."""
        done = subprocess.run(["sinfo", "-hN", "-o", "%N %t"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
        return dict(line.split() for line in done.stdout.splitlines())

    def wait_until_idle(self):
        until(lambda: list(self.states().values()) == ["idle"] * len(NODES),
              "all nodes to be idle")

    def wait_until_clean(self, since=None):
        """Nothing of a job is left on any node, processes of Slurm included; returns the seconds that
        it took."""
        since = time.monotonic() if since is None else since

        def left():
            return {node.name: found for node in self.nodes if (found := node.leftovers())}

        until(lambda: not left(), "all to be gone", MOST_TO_CLEAN + since - time.monotonic(),
              also=left)
        return time.monotonic() - since

    def stop(self):
        for node in self.nodes:
            if node.outside.poll() is None:
                node.kill()
        for process in reversed(self.started):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
