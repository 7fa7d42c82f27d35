"""The programs of the Kubernetes control plane, built from the pinned Go modules in tools/.

`python -m tests.e2e.binaries` builds what is missing and prints the directory. The first build compiles
Kubernetes and takes about ten minutes on two cores; afterwards the directory is found in the user's cache.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

TOOLS = Path(__file__).parent / "tools"
KUBERNETES_VERSION = "v1.36.3"

# Without the version kubectl and the controllers cannot parse their own; -s -w leaves out debugging tables.
_LDFLAGS = f"-s -w -X k8s.io/component-base/version.gitVersion={KUBERNETES_VERSION}"

# Prometheus finds its targets by twenty clouds' libraries, of which promtool needs none here.
_TAGS = "remove_all_sd"

Package: TypeAlias = tuple[str, str]
"""A folder under tools/ with a go.mod, and the package in it or in one of the modules it requires."""

# In the order in which they are built.
_PACKAGES: dict[str, Package] = {
    "etcd": ("kubernetes", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": ("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
}
PROGRAMS = tuple(_PACKAGES)

# What checks and installs what we ship, in the same way; each has a module of its own.
_TOOLS: dict[str, Package] = {
    "helm": ("helm", "helm.sh/helm/v4/cmd/helm"),
    "promtool": ("promtool", "github.com/prometheus/prometheus/cmd/promtool"),
    "actionlint": ("actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),
}

# Built by itself: its modules are not the others', and nothing else waits for it.
_STATE_METRICS: dict[str, Package] = {"kube-state-metrics": ("kube-state-metrics", "k8s.io/kube-state-metrics/v2")}

_MONITORING = "example/prometheus-operator-crd/monitoring.coreos.com_{}.yaml"
_AI_GATEWAY = "manifests/charts/ai-gateway-crds-helm/templates/aigateway.envoyproxy.io_{}.yaml"
_ENVOY_GATEWAY = "charts/gateway-helm/charts/crds/crds/generated/gateway.envoyproxy.io_{}.yaml"

# The custom resources that some children and the components in manifests/ are made of: name -> (module, file in it).
_CRDS = {
    "leaderworkersets": ("sigs.k8s.io/lws", "config/crd/bases/leaderworkerset.x-k8s.io_leaderworkersets.yaml"),
    "gateways": ("sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_gateways.yaml"),
    "gatewayclasses": ("sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_gatewayclasses.yaml"),
    "httproutes": ("sigs.k8s.io/gateway-api", "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml"),
    "inferencepools": (
        "sigs.k8s.io/gateway-api-inference-extension",
        "config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",
    ),
    **{
        name: (module, folder.format(name))
        for module, folder, names in (
            (
                "github.com/prometheus-operator/prometheus-operator",
                _MONITORING,
                ("podmonitors", "servicemonitors", "prometheuses", "prometheusrules"),
            ),
            ("github.com/envoyproxy/ai-gateway", _AI_GATEWAY, ("aigatewayroutes", "aiservicebackends")),
            (
                "github.com/envoyproxy/gateway",
                _ENVOY_GATEWAY,
                ("backends", "envoyproxies", "clienttrafficpolicies"),
            ),
        )
        for name in names
    },
    "inferenceobjectives": (
        "sigs.k8s.io/gateway-api-inference-extension",
        "config/crd/bases/inference.networking.x-k8s.io_inferenceobjectives.yaml",
    ),
    "scaledobjects": ("github.com/kedacore/keda/v2", "config/crd/bases/keda.sh_scaledobjects.yaml"),
    "variantautoscalings": (
        "github.com/llm-d/llm-d-workload-variant-autoscaler",
        "config/crd/bases/llmd.ai_variantautoscalings.yaml",
    ),
}


class BinariesMissingError(RuntimeError):
    """The programs are not there and cannot be built here."""


def program(name: str) -> Path:
    """The path of one of `PROGRAMS`: from `KUBEBUILDER_ASSETS` when it has it, built otherwise."""
    return _provided(name) or directory() / name


def missing() -> str | None:
    """Why the programs cannot be had here, or None when they can (which may mean building them first)."""
    absent = [name for name in PROGRAMS if _provided(name) is None]
    if not absent or shutil.which("go"):
        return None
    if "KUBEBUILDER_ASSETS" in os.environ:
        return f"KUBEBUILDER_ASSETS has no {', '.join(absent)}, and there is no Go toolchain to build it"
    return "there is neither a Go toolchain nor KUBEBUILDER_ASSETS"


@functools.cache
def directory() -> Path:
    """The directory of the built programs; builds them when the cache has none for these exact modules."""
    return built("e2e", _PACKAGES)


@functools.cache
def tool(name: str) -> Path:
    """The path of a program that checks or installs what we ship: `helm`, `promtool` or `actionlint`."""
    return built("tools", _TOOLS) / name


def kube_state_metrics() -> Path:
    """The path of kube-state-metrics, which the component of that name runs."""
    return built("kube-state-metrics", _STATE_METRICS) / "kube-state-metrics"


def built(name: str, packages: Mapping[str, Package], patch: Callable[[Path], Path] | None = None) -> Path:
    """The directory `name` of the cache with these programs, built when it has none for these exact modules.

    ``patch`` writes a changed copy of the programs' module below a folder and returns where they are compiled.
    """
    target = build_directory(name, packages)
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_suffix(".lock")):
            if not target.is_dir():  # another run may have built them while we waited for the lock
                _build(target, packages, patch)
    return target


def build_directory(name: str, packages: Mapping[str, Package]) -> Path:
    """The directory of the cache for these exact modules, which exists once they are built."""
    if shutil.which("go") is None:
        raise BinariesMissingError("building the control plane needs the Go toolchain (`go`) on PATH")
    return cache_home() / name / _fingerprint(packages)


def optional_crds(*names: str) -> list[Path]:
    """CRD files of what not every cluster has, by plural (`httproutes`, ...); all of them without names."""
    return [module_directory("crds", module) / path for module, path in (_CRDS[name] for name in names or _CRDS)]


def kwok_stages() -> list[Path]:
    """kwok's own stages: pods run at once, jobs complete, nodes stay ready, claims get volumes."""
    stages = module_directory("kwok", "sigs.k8s.io/kwok") / "kustomize" / "stage"
    folders = ("pod/fast", "node/fast", "node/heartbeat-with-lease", "volume/fast")
    files = (path for folder in folders for path in sorted((stages / folder).glob("*.yaml")))
    return [path for path in files if "\nkind: Stage\n" in path.read_text()]


def _provided(name: str) -> Path | None:
    """The program in `KUBEBUILDER_ASSETS`, the convention of setup-envtest."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(assets, name) if assets else None
    return path if path and path.is_file() else None


def cache_home() -> Path:
    """Where in the user's cache directory everything lies that these tests keep."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modelhooks"


def _fingerprint(packages: Mapping[str, Package]) -> str:
    """A hash of everything the programs are made from."""
    digest = hashlib.sha256(_LDFLAGS.encode())
    digest.update(go("kubernetes", "env", "GOVERSION", "GOOS", "GOARCH").encode())
    for source in _sources(module for module, _ in packages.values()):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _sources(modules: Iterable[str]) -> list[Path]:
    """What is ours in some modules: their pins, and the programs that some have."""
    files = (path for module in sorted(set(modules)) for path in sorted((TOOLS / module).rglob("*")))
    return [path for path in files if path.is_file()]


def _build(target: Path, packages: Mapping[str, Package], patch: Callable[[Path], Path] | None = None) -> None:
    """Compile into a directory beside `target` and rename: what carries the final name is complete."""
    say(f"building {', '.join(packages)} into {target}: minutes on two cores, the first time only")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        output = Path(scratch, "bin")
        output.mkdir()
        patched = patch(Path(scratch)) if patch is not None else None
        for name, (module, package) in packages.items():
            began = time.monotonic()
            say(f"  {name} …")
            options = ("-buildvcs=false", "-ldflags", _LDFLAGS, "-tags", _TAGS, "-o", str(output / name))
            go(patched or module, "build", *options, package)
            say(f"  {name}: {time.monotonic() - began:.0f} s")
        output.rename(target)


def say(line: str) -> None:
    """A line for whoever waits; a test's output would be held back until the test is over."""
    print(line, file=sys.stderr, flush=True)


@functools.cache
def module_directory(tool: str, module: str) -> Path:
    """Where the module cache keeps the version of `module` that tools/`tool` pins (downloaded when absent)."""
    return Path(json.loads(go(tool, "mod", "download", "-json", module))["Dir"])


def go(module: str | Path, *arguments: str) -> str:
    """Run the go command in tools/`module` or in a folder, outside any workspace of the user's; its output."""
    command = ["go", *arguments]
    environment = os.environ | {"GOWORK": "off"}
    done = subprocess.run(command, cwd=TOOLS / module, env=environment, text=True, capture_output=True, check=False)
    if done.returncode:
        raise BinariesMissingError(f"{' '.join(command)} in {TOOLS / module} failed:\n{done.stderr}{done.stdout}")
    return done.stdout


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that other processes of this user respect; the kernel frees it when we die."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Build what is missing, before anything captures the output, and name the directory.

    Where it cannot be built, say why, and leave it to the tests: they are skipped, or fail where they must run.
    """
    if os.environ.get("MODELHOOKS_E2E") != "required" and (reason := missing()) is not None:
        say(f"no control plane: {reason}")
        return
    if all(_provided(name) for name in PROGRAMS):
        print(os.environ["KUBEBUILDER_ASSETS"])
    else:
        print(directory())
    if shutil.which("go"):
        built("tools", _TOOLS)
        kube_state_metrics()


if __name__ == "__main__":
    main()
