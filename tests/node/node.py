"""A node that runs pods: containerd, kubelet and kube-proxy beside a control plane, with cluster DNS.

All of it runs inside the namespaces of `machine` and ends with them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.processes import Process, wait_until
from tests.node import images, machine
from tests.node.report import step

NAME = "node1"
USERS = {f"system:node:{NAME}": ["system:nodes"], "system:kube-proxy": []}
"""The users of kubelet and kube-proxy, with the same rights as on any cluster."""

_DNS = "10.96.0.10"
_MANIFESTS = Path(__file__).parent / "cluster.yaml"
_SOCKET = "/run/containerd/containerd.sock"
_WITHOUT = ("btrfs", "devmapper", "zfs")


class Node:
    """The node, as a context manager.

    `programs` is the folder of its programs, `cgroup` the parent of its pods' cgroups.
    """

    def __init__(self, cluster: ControlPlane, workdir: Path, programs: Path, cgroup: str) -> None:
        self.cluster = cluster
        self.workdir = workdir
        self._programs = programs
        self._cgroup = cgroup
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        self.workdir.mkdir(parents=True)
        try:
            with step("containerd"):
                self._start_containerd()
            with step("kubelet, kube-proxy: node ready"):
                self._start_kubelet()
                self._start_proxy()
                wait_until(self._is_ready, f"node {NAME} ready")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        while self._processes:
            self._processes.pop().stop()

    def load(self, *archives: Path) -> None:
        """Load the images of docker archives into containerd."""
        for archive in archives:
            self._run_ctr(self.load_command(archive))

    def load_command(self, archive: Path) -> list[str]:
        """Return the command that loads an archive."""
        return self._ctr_command("images", "import", "--local", str(archive))

    def tag(self, image: str, name: str) -> None:
        """Give an image another name."""
        self._run_ctr(self._ctr_command("images", "tag", "--force", image, name))

    def start_dns(self) -> None:
        """Start CoreDNS as a Deployment behind the cluster's DNS Service, and use it as this machine's own resolver."""
        self.cluster.kubectl("apply", "-f", _MANIFESTS)
        self.cluster.kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", TIMEOUT)
        Path("/etc/resolv.conf").unlink(missing_ok=True)
        Path("/etc/resolv.conf").write_text(
            f"nameserver {_DNS}\nsearch svc.cluster.local cluster.local\noptions ndots:5\n"
        )

    def check(self) -> None:
        """Raise an error if any of the processes has ended."""
        for process in self._processes:
            process.check()

    def _run(self, name: str, *arguments: str) -> Process:
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        process = Process(
            name,
            [self._programs / name, *arguments],
            self.workdir / "logs" / f"{name}.log",
            os.environ | {"HOME": str(self.workdir), "PATH": path},
        )
        self._processes.append(process)
        return process

    def _start_containerd(self) -> None:
        network = {
            "cniVersion": "1.0.0",
            "name": "node",
            "plugins": [
                {
                    "type": "ptp",
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "subnet": machine.POD_NETWORK,
                        "dataDir": str(self.workdir / "addresses"),
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ],
        }
        networks = self.workdir / "networks"
        networks.mkdir()
        (networks / "10-node.conflist").write_text(json.dumps(network))
        config = self.workdir / "containerd.toml"
        config.write_text(_containerd_config(self.workdir, self._programs, networks))
        containerd = self._run("containerd", "--config", str(config))
        containerd.wait_ready(lambda: self._run_ctr(self._ctr_command("version"), check=False).returncode == 0)

    def _start_kubelet(self) -> None:
        # Otherwise pods that use the node's resolver would ask it for names of the cluster, in a loop.
        resolver = self.workdir / "resolv.conf"
        resolver.write_text("nameserver 127.0.0.1\n")
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": f"unix://{_SOCKET}",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "clusterDNS": [_DNS],
            "clusterDomain": "cluster.local",
            "resolvConf": str(resolver),
            "oomScoreAdj": 0,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "volumePluginDir": str(self.workdir / "volume-plugins"),
        }
        path = self.workdir / "kubelet.yaml"
        path.write_text(yaml.safe_dump(config))
        self._run(
            "kubelet",
            f"--config={path}",
            f"--kubeconfig={self.cluster.kubeconfig_of(f'system:node:{NAME}')}",
            f"--hostname-override={NAME}",
            f"--node-ip={machine.ADDRESS}",
            "--v=2",
        )

    def _start_proxy(self) -> None:
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "hostnameOverride": NAME,
            "clientConnection": {"kubeconfig": str(self.cluster.kubeconfig_of("system:kube-proxy"))},
            "clusterCIDR": machine.POD_NETWORK,
            "oomScoreAdj": 0,
            # Do not change limits of the whole machine.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            "iptables": {"minSyncPeriod": "0s"},
        }
        path = self.workdir / "kube-proxy.yaml"
        path.write_text(yaml.safe_dump(config))
        self._run("kube-proxy", f"--config={path}")

    def _is_ready(self) -> bool:
        self.check()
        response = self.cluster.client.get(f"/api/v1/nodes/{NAME}")
        if response.status_code != 200:
            return False
        node = response.json()
        conditions = {condition["type"]: condition["status"] for condition in node["status"].get("conditions", [])}
        return conditions.get("Ready") == "True" and not node["spec"].get("taints")

    def _ctr_command(self, *arguments: str) -> list[str]:
        return [str(self._programs / "ctr"), "--address", _SOCKET, "--namespace", "k8s.io", *arguments]

    def _run_ctr(self, command: list[str], *, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: code {done.returncode}\n{done.stderr}{done.stdout}")
        return done


def _containerd_config(workdir: Path, plugins: Path, networks: Path) -> str:
    """Return containerd's configuration, version 3. runc is the machine's."""
    disabled = [f"io.containerd.snapshotter.v1.{name}" for name in _WITHOUT] + ["io.containerd.nri.v1.nri"]
    cri = "plugins.'io.containerd.cri.v1"
    return f"""\
version = 3
root = "{workdir / "containerd"}"
state = "/run/containerd"
oom_score = 0
disabled_plugins = {json.dumps(disabled)}
[grpc]
  address = "{_SOCKET}"
[{cri}.images'.pinned_images]
  sandbox = "{images.PAUSE}"
[{cri}.runtime']
  # Without CAP_SYS_RESOURCE nobody may ask the kernel to spare a process.
  restrict_oom_score_adj = true
  disable_apparmor = true
[{cri}.runtime'.cni]
  bin_dirs = ["{plugins}"]
  conf_dir = "{networks}"
[{cri}.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[{cri}.runtime'.containerd.runtimes.runc.options]
  BinaryName = "{shutil.which("runc")}"
  SystemdCgroup = false
"""
