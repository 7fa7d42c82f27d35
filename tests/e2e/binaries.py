"""The programs of the Kubernetes control plane, built from the pinned Go modules in tools/.

`python -m tests.e2e.binaries` builds what is missing and prints the directory. The first build compiles Kubernetes and
takes about ten minutes on two cores; later runs use the directory in the user's cache.

`MODELHOOKS_E2E_KUBERNETES=1.30.14` takes API server, controllers and scheduler of another release, built from a module
that is made of the release's own go.mod; etcd, kubectl and kwok stay.
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
KUBERNETES_VERSION = "v1.37.2"

# kubectl and the controllers cannot parse their own version unless it is set; -s -w omits debugging tables.
_LDFLAGS = "-s -w -X k8s.io/component-base/version.gitVersion="

# Of Prometheus' service discovery, Kubernetes' alone, without the libraries of twenty clouds.
_TAGS = "remove_all_sd,enable_kubernetes_sd"

Package: TypeAlias = tuple[str, str]
"""A folder under tools/ with a go.mod, and a package in it or in one of the modules it requires."""

# In build order.
_PACKAGES: dict[str, Package] = {
    "etcd": ("kubernetes", "go.etcd.io/etcd/server/v3"),
    "kube-apiserver": ("kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver"),
    "kube-controller-manager": ("kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    "kube-scheduler": ("kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler"),
    "kubectl": ("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
    "kwok": ("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
}
PROGRAMS = tuple(_PACKAGES)
_OF_RELEASE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Programs that another release replaces; etcd, kubectl and kwok work with each that is tested."""

# Programs that check or install what we ship; each has a separate module.
_TOOLS: dict[str, Package] = {
    "helm": ("helm", "helm.sh/helm/v4/cmd/helm"),
    "promtool": ("promtool", "github.com/prometheus/prometheus/cmd/promtool"),
    "actionlint": ("actionlint", "github.com/rhysd/actionlint/cmd/actionlint"),
}

# Asks what other projects' rules say about objects; small, and changed together with the tests.
_HEALTH: dict[str, Package] = {"health": ("health", ".")}

# Built separately: its modules differ from the others', and nothing else depends on it.
_STATE_METRICS: dict[str, Package] = {"kube-state-metrics": ("kube-state-metrics", "k8s.io/kube-state-metrics/v2")}

_MONITORING = "example/prometheus-operator-crd/monitoring.coreos.com_{}.yaml"
_AI_GATEWAY = "manifests/charts/ai-gateway-crds-helm/templates/aigateway.envoyproxy.io_{}.yaml"
_ENVOY_GATEWAY = "charts/gateway-helm/charts/crds/crds/generated/gateway.envoyproxy.io_{}.yaml"

# CRDs of optional children and of the components in manifests/: name -> (module, file in it).
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
            (
                "github.com/envoyproxy/ai-gateway",
                _AI_GATEWAY,
                ("aigatewayroutes", "aiservicebackends", "gatewayconfigs"),
            ),
            (
                "github.com/envoyproxy/gateway",
                _ENVOY_GATEWAY,
                ("backends", "envoyproxies", "clienttrafficpolicies", "securitypolicies", "backendtrafficpolicies"),
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
    "destinationrules": ("istio.io/api", "kubernetes/customresourcedefinitions.gen.yaml"),
}

OPTIONAL_KINDS = tuple(_CRDS)


class BinariesMissingError(RuntimeError):
    """The programs are missing and cannot be built here."""


def program(name: str) -> Path:
    """Return the path of one of `PROGRAMS`: in `KUBEBUILDER_ASSETS` if it is there, otherwise built."""
    other = name in _OF_RELEASE and release() != KUBERNETES_VERSION
    return _provided(name) or (release_directory(release()) if other else directory()) / name


def release() -> str:
    """Return the release of Kubernetes that the tests run on, such as ``v1.37.2``."""
    asked = os.environ.get("MODELHOOKS_E2E_KUBERNETES", "").removeprefix("v")
    return f"v{asked}" if asked else KUBERNETES_VERSION


def missing() -> str | None:
    """Return why the programs are not available here, or None if they are (possibly after building them)."""
    absent = [name for name in PROGRAMS if _provided(name) is None]
    if not absent or shutil.which("go"):
        return None
    if "KUBEBUILDER_ASSETS" in os.environ:
        return f"KUBEBUILDER_ASSETS has no {', '.join(absent)}, and there is no Go toolchain to build it"
    return "there is neither a Go toolchain nor KUBEBUILDER_ASSETS"


@functools.cache
def directory() -> Path:
    """Return the directory of the built programs; build them unless the cache has them for these exact modules."""
    return built("e2e", _PACKAGES)


@functools.cache
def release_directory(version: str) -> Path:
    """Return the directory of API server, controllers and scheduler of a release; build them as the pinned ones are."""
    module = cache_home() / "modules" / f"kubernetes-{version}"
    module.parent.mkdir(parents=True, exist_ok=True)
    with locked(module.with_suffix(".lock")):
        if not module.is_dir():
            _write_module(module, version)
    packages = {name: (str(module), _PACKAGES[name][1]) for name in _OF_RELEASE}
    return built(f"e2e-{version}", packages, version=version)


def _write_module(target: Path, version: str) -> None:
    """Write a module with the requirements of a release, whose own parts are those that were published with it."""
    staging = version.replace("v1.", "v0.", 1)
    origin = Path(json.loads(go("kubernetes", "mod", "download", "-json", f"k8s.io/kubernetes@{version}"))["Dir"])
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="module-") as scratch:
        module = Path(scratch, "module")
        module.mkdir()
        (module / "go.mod").write_bytes((origin / "go.mod").read_bytes())
        required = json.loads(go(module, "mod", "edit", "-json"))["Require"]
        parts = [item["Path"] for item in required if item["Version"] == "v0.0.0"]
        edits = [
            option for part in parts for option in (f"-require={part}@{staging}", f"-replace={part}={part}@{staging}")
        ]
        go(module, "mod", "edit", "-module=modelhooks/kubernetes", f"-require=k8s.io/kubernetes@{version}", *edits)
        go(module, "list", "-mod=mod", "-deps", *(_PACKAGES[name][1] for name in _OF_RELEASE))  # completes go.sum
        module.rename(target)


@functools.cache
def tool(name: str) -> Path:
    """Return the path of a program that checks or installs what we ship: `helm`, `promtool` or `actionlint`."""
    return built("tools", _TOOLS) / name


def health() -> Path:
    """Return the path of the program that says what kstatus and Argo CD's health script make of objects."""
    return built("health", _HEALTH) / "health"


def kube_state_metrics() -> Path:
    """Return the path of kube-state-metrics, which the component of that name runs."""
    return built("kube-state-metrics", _STATE_METRICS) / "kube-state-metrics"


def built(
    name: str,
    packages: Mapping[str, Package],
    patch: Callable[[Path], Path] | None = None,
    version: str = KUBERNETES_VERSION,
) -> Path:
    """Return the cache's directory `name` of these programs; build them unless it has them for these exact modules.

    ``patch`` writes a patched copy of the programs' module below a folder and returns the directory to compile in.
    ``version`` is the release that programs of Kubernetes say they are.
    """
    target = build_directory(name, packages, version)
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.with_suffix(".lock")):
            if not target.is_dir():  # another run may have built them while this one waited for the lock
                _build(target, packages, patch, version)
    return target


def build_directory(name: str, packages: Mapping[str, Package], version: str = KUBERNETES_VERSION) -> Path:
    """Return the cache directory for these exact modules; it exists once they are built."""
    if shutil.which("go") is None:
        raise BinariesMissingError("building the control plane needs the Go toolchain (`go`) on PATH")
    return cache_home() / name / _fingerprint(packages, version)


def optional_crds(*names: str) -> list[Path]:
    """Return the CRD files of optional kinds, by plural (`httproutes`, ...); all of them by default."""
    return [_crd(name) for name in names or _CRDS]


def crd_of(name: str, version: str) -> Path:
    """Return the CRD file of an optional kind, by plural, in another release of its module."""
    return _crd(name, f"@{version}")


def _crd(name: str, version: str = "") -> Path:
    """Return the file of a CRD; of a module with one file for all of its CRDs, a copy of the part."""
    module, path = _CRDS[name]
    file = module_directory("crds", module + version) / path
    if name in file.name:
        return file
    (part,) = (part for part in file.read_text().split("\n---\n") if f"\n  name: {name}." in part)
    copy = cache_home() / "crds" / f"{hashlib.sha256(part.encode()).hexdigest()[:16]}-{name}.yaml"
    copy.parent.mkdir(parents=True, exist_ok=True)
    with locked(copy.with_suffix(".lock")):
        copy.write_text(part)
    return copy


def kwok_stages() -> list[Path]:
    """Return kwok's own stages: pods run at once, Jobs complete, nodes stay ready, claims get volumes."""
    stages = module_directory("kwok", "sigs.k8s.io/kwok") / "kustomize" / "stage"
    folders = ("pod/fast", "node/fast", "node/heartbeat-with-lease", "volume/fast")
    files = (path for folder in folders for path in sorted((stages / folder).glob("*.yaml")))
    return [path for path in files if "\nkind: Stage\n" in path.read_text()]


def _provided(name: str) -> Path | None:
    """Return the program in `KUBEBUILDER_ASSETS`, the convention of setup-envtest, or None."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(assets, name) if assets else None
    return path if path and path.is_file() else None


def cache_home() -> Path:
    """Return the folder in the user's cache directory for everything that these tests keep."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modelhooks"


def _fingerprint(packages: Mapping[str, Package], version: str = KUBERNETES_VERSION) -> str:
    """Return a hash of everything the programs are built from."""
    digest = hashlib.sha256(f"{_LDFLAGS}{version}".encode())
    digest.update(go("kubernetes", "env", "GOVERSION", "GOOS", "GOARCH").encode())
    for source in _sources(module for module, _ in packages.values()):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _sources(modules: Iterable[str]) -> list[Path]:
    """Return this repository's files of some modules: their pins, and the sources of programs."""
    files = (path for module in sorted(set(modules)) for path in sorted((TOOLS / module).rglob("*")))
    return [path for path in files if path.is_file()]


def _build(
    target: Path,
    packages: Mapping[str, Package],
    patch: Callable[[Path], Path] | None = None,
    version: str = KUBERNETES_VERSION,
) -> None:
    """Compile into a directory beside `target` and rename it, so that `target` is always complete."""
    say(f"building {', '.join(packages)} into {target}: minutes on two cores, the first time only")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        output = Path(scratch, "bin")
        output.mkdir()
        patched = patch(Path(scratch)) if patch is not None else None
        for name, (module, package) in packages.items():
            began = time.monotonic()
            say(f"  {name} …")
            options = ("-buildvcs=false", "-ldflags", f"{_LDFLAGS}{version}", "-tags", _TAGS, "-o", str(output / name))
            go(patched or module, "build", *options, package)
            say(f"  {name}: {time.monotonic() - began:.0f} s")
        output.rename(target)


def say(line: str) -> None:
    """Print a progress message to standard error; pytest would hold back a test's output until its end."""
    print(line, file=sys.stderr, flush=True)


@functools.cache
def module_directory(tool: str, module: str) -> Path:
    """Return the module cache's directory of a module; download it if missing.

    The version is the one that is pinned in tools/`tool`, unless ``module`` has the form ``path@version``.
    """
    return Path(json.loads(go(tool, "mod", "download", "-json", module))["Dir"])


def copied_module(tool: str, module: str, target: Path) -> Path:
    """Copy a module that is pinned in tools/`tool`, to patch it; files in the module cache are read-only."""
    shutil.copytree(module_directory(tool, module), target, copy_function=shutil.copyfile)
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    return target


def go(module: str | Path, *arguments: str) -> str:
    """Run the go command in tools/`module` or in a folder, outside the user's workspaces; return its output."""
    command = ["go", *arguments]
    environment = os.environ | {"GOWORK": "off"}
    done = subprocess.run(command, cwd=TOOLS / module, env=environment, text=True, capture_output=True, check=False)
    if done.returncode:
        raise BinariesMissingError(f"{' '.join(command)} in {TOOLS / module} failed:\n{done.stderr}{done.stdout}")
    return done.stdout


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes of this user; the kernel releases it when the process ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Build what is missing and print the directory.

    If it cannot be built, print the reason. The tests are then skipped, or fail if they are required.
    """
    if os.environ.get("MODELHOOKS_E2E") != "required" and (reason := missing()) is not None:
        say(f"no control plane: {reason}")
        return
    if all(_provided(name) for name in PROGRAMS):
        print(os.environ["KUBEBUILDER_ASSETS"])
    else:
        print(*dict.fromkeys(program(name).parent for name in PROGRAMS), sep="\n")
    if shutil.which("go"):
        built("tools", _TOOLS)
        kube_state_metrics()


if __name__ == "__main__":
    main()
