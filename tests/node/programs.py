"""The node's programs, built from the pinned Go modules beside those of the control plane."""

from __future__ import annotations

from pathlib import Path

from tests.e2e import binaries
from tests.e2e.binaries import Package

_CONTAINERD = "github.com/containerd/containerd/v2/cmd/"
_CNI = "github.com/containernetworking/plugins/plugins/"

PACKAGES: dict[str, Package] = {
    "kubelet": ("kubernetes", "k8s.io/kubernetes/cmd/kubelet"),
    "kube-proxy": ("kubernetes", "k8s.io/kubernetes/cmd/kube-proxy"),
    **{name: ("containerd", _CONTAINERD + name) for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
    **{
        path.rpartition("/")[2]: ("cni", _CNI + path)
        for path in ("main/ptp", "main/loopback", "ipam/host-local", "meta/portmap")
    },
    "coredns": ("coredns", "."),
}


ADAPTER: dict[str, Package] = {"adapter": ("adapter", "sigs.k8s.io/prometheus-adapter/cmd/adapter")}


def adapter() -> Path:
    """Return the metrics adapter. It is built separately, because its modules are older than the node's."""
    return binaries.built("adapter", ADAPTER) / "adapter"


def directory() -> Path:
    """Return the directory of all programs, including the CNI plugins; build what is missing."""
    return binaries.built("node", PACKAGES)
