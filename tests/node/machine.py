"""Checks whether this machine can run a node, and creates the namespaces and the cgroup for it.

Each run has its own network, mount and process namespaces. They end with the run's first process, and all processes,
mounts and interfaces end with them. The cgroup and a folder remain; they are recorded in the folder for `clean`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.e2e import binaries
from tests.node.clean import hierarchies, remove_cgroup, started

ADDRESS = "10.88.0.1"
"""The address of the node and of the API server."""

POD_NETWORK = "10.244.0.0/24"
RUN = "MODELHOOKS_NODE_RUN"
"""The environment variable that names a run's folder; it is set inside the namespaces."""

SERVED = Path("/run/node")
"""The path of the run's folder inside its namespaces; it is short because paths of sockets must be."""

_TOOLS = ("apt-get", "buildah", "dpkg-deb", "ip", "iptables", "mount", "runc", "unshare")
_NAMESPACES = ("--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation=private")

# Values that the kubelet requires of the whole machine; it reads them from mounted files, and the machine is not
# changed.
_SYSCTLS = {
    "kernel/keys/root_maxbytes": 25_000_000,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
}


def missing() -> str | None:
    """Return why no node can run here, or None."""
    if sys.platform != "linux":
        return "a node needs Linux"
    if os.geteuid() != 0:
        return "a node needs root"
    if absent := [tool for tool in _TOOLS if shutil.which(tool) is None]:
        return f"a node needs {', '.join(absent)} (packages of Debian: buildah iproute2 iptables runc)"
    if (reason := binaries.missing()) is not None or shutil.which("go") is None:
        return reason or "there is no Go toolchain to build kubelet and containerd"
    return None


def unusable(folder: Path) -> str | None:
    """Try out what a node needs in new namespaces, with its files in a new folder; return what fails, or None."""
    try:
        make_cgroup(folder.name)
        rehearsal = "import sys; from tests.node import machine; machine.rehearse(sys.argv[1])"
        _run(*command([sys.executable, "-c", rehearsal, str(folder)]))
    except (OSError, RuntimeError) as error:
        return f"namespaces, mounts, interfaces and cgroups of one's own cannot be had: {error}"
    finally:
        remove_cgroup(folder.name)
    return None


def rehearse(folder: str) -> None:
    """Inside new namespaces, do what a node does to them, and what containerd and kube-proxy will do."""
    isolate(Path(folder))
    image, upper, work, merged = (SERVED / "overlay" / name for name in ("image", "upper", "work", "merged"))
    for path in (image, upper, work, merged):
        path.mkdir(parents=True)
    _run("mount", "-t", "overlay", "-o", f"lowerdir={image},upperdir={upper},workdir={work}", "overlay", str(merged))
    _run("iptables", "-t", "nat", "-L", "-n")


def command(argv: list[str]) -> list[str]:
    """Return the command line that runs `argv` in new namespaces; bash is their first process and reaps orphans."""
    return [shutil.which("unshare") or "unshare", *_NAMESPACES, "bash", "-c", '"$@"; exit "$?"', "bash", *argv]


def note(folder: Path, pid: int) -> None:
    """Record what a run of this folder leaves behind if it is killed."""
    (folder / "run.json").write_text(json.dumps({"pid": pid, "started": started(pid), "cgroup": folder.name}))


def make_cgroup(name: str) -> None:
    """Create the parent cgroup of the kubelet's pods in each hierarchy."""
    for hierarchy in hierarchies():
        group = hierarchy / name
        group.mkdir(exist_ok=True)
        # cgroups of version 1: a new group has no cpuset, and without one it accepts no process.
        for file in ("cpuset.cpus", "cpuset.mems"):
            if (hierarchy / file).exists() and (group / file).exists() and not (group / file).read_text().strip():
                (group / file).write_text((hierarchy / file).read_text())


def isolate(folder: Path) -> None:
    """Inside new namespaces, set up a network with a single host, and mount this run's files."""
    _run("mount", "-t", "tmpfs", "tmpfs", "/run")
    Path("/run/lock").mkdir()
    SERVED.mkdir()
    _run("mount", "--bind", str(folder), str(SERVED))
    for name in ("etc", "var"):
        upper, work = (Path("/run/overlay", name, part) for part in ("upper", "work"))
        upper.mkdir(parents=True)
        work.mkdir()
        _run("mount", "-t", "overlay", "-o", f"lowerdir=/{name},upperdir={upper},workdir={work}", "overlay", f"/{name}")
    # Real directories below those: overlays of images cannot be on an overlay, and the kubelet measures its own.
    for inside, path in (("kubelet", "/var/lib/kubelet"), ("pod-logs", "/var/log/pods")):
        (SERVED / inside).mkdir()
        Path(path).mkdir(parents=True, exist_ok=True)
        _run("mount", "--bind", str(SERVED / inside), path)
    (SERVED / "sysctl").mkdir()
    for number, (name, value) in enumerate(_SYSCTLS.items()):
        file = SERVED / "sysctl" / str(number)
        file.write_text(f"{value}\n")
        _run("mount", "--bind", str(file), f"/proc/sys/{name}")
    _run("mount", "--make-rshared", "/")
    for words in (
        "link set lo up",
        "link add eth0 type veth peer name peer",
        f"address add {ADDRESS}/24 dev eth0",
        "link set peer up",
        "link set eth0 up",
        f"route add default via {ADDRESS.rpartition('.')[0]}.254 dev eth0",
    ):
        _run("ip", *words.split())
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _run(*argv: str) -> None:
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)}: code {done.returncode}\n{done.stderr}")
