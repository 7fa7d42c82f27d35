"""Tests of how the control plane's programs are found and built. Nothing is built here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e import binaries


def _assets(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


def test_kubebuilder_assets_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(_assets(tmp_path, "etcd", "kubectl")))
    assert binaries.program("kubectl") == tmp_path / "kubectl"


def test_what_assets_lack_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(_assets(tmp_path, "etcd")))
    monkeypatch.setattr(binaries, "directory", lambda: Path("built"))
    assert binaries.program("kwok") == Path("built/kwok")


def test_another_release_replaces_server_controllers_and_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setattr(binaries, "directory", lambda: Path("pinned"))
    monkeypatch.setattr(binaries, "release_directory", Path)
    for asked in ("1.30.14", "v1.30.14"):
        monkeypatch.setenv("MODELHOOKS_E2E_KUBERNETES", asked)
        folders = {name: str(binaries.program(name).parent) for name in binaries.PROGRAMS}
        assert folders == {
            **dict.fromkeys(binaries.PROGRAMS, "pinned"),
            **dict.fromkeys(("kube-apiserver", "kube-controller-manager", "kube-scheduler"), "v1.30.14"),
        }
    for same in ("", binaries.KUBERNETES_VERSION.removeprefix("v")):
        monkeypatch.setenv("MODELHOOKS_E2E_KUBERNETES", same)
        assert {binaries.program(name).parent for name in binaries.PROGRAMS} == {Path("pinned")}


def test_a_release_is_built_from_its_own_requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kubernetes' go.mod requires its own parts as v0.0.0, and replaces them by folders that modules lack."""
    (tmp_path / "go.mod").write_text("module k8s.io/kubernetes\n")
    calls: list[tuple[str, ...]] = []
    requirements = [{"Path": "k8s.io/api", "Version": "v0.0.0"}, {"Path": "k8s.io/klog/v2", "Version": "v2.130.1"}]

    def go(_module: object, *arguments: str) -> str:
        calls.append(arguments)
        if "download" in arguments:
            return json.dumps({"Dir": str(tmp_path)})
        return json.dumps({"Require": requirements}) if "-json" in arguments else ""

    monkeypatch.setattr(binaries, "go", go)
    target = tmp_path / "modules" / "kubernetes"
    target.parent.mkdir()
    binaries._write_module(target, "v1.30.14")
    assert (target / "go.mod").read_text() == "module k8s.io/kubernetes\n"
    assert calls[0][-1] == "k8s.io/kubernetes@v1.30.14"
    (edit,) = (call for call in calls if call[:2] == ("mod", "edit") and "-json" not in call)
    assert {"-require=k8s.io/kubernetes@v1.30.14", "-replace=k8s.io/api=k8s.io/api@v0.30.14"} <= {*edit}
    assert not any("klog" in option for option in edit)


def test_missing_without_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert binaries.missing() == "there is neither a Go toolchain nor KUBEBUILDER_ASSETS"

    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(_assets(tmp_path, "etcd", "kube-apiserver", "kubectl")))
    reason = binaries.missing()
    assert reason is not None
    assert "no kube-controller-manager, kube-scheduler, kwok" in reason

    _assets(tmp_path, *binaries.PROGRAMS)
    assert binaries.missing() is None


def test_nothing_is_missing_with_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(_assets(tmp_path, "go")))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    assert binaries.missing() is None


def test_prints_each_program_with_its_build_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each program is printed before the build, which takes minutes, and again with its duration."""
    built: list[str] = []

    def go(_module: str, *arguments: str) -> str:
        if arguments[0] == "build":
            built.append(capsys.readouterr().err)
            Path(arguments[arguments.index("-o") + 1]).touch()
        return ""

    monkeypatch.setattr(binaries, "go", go)
    target = tmp_path / "target"
    binaries._build(target, binaries._PACKAGES)
    assert sorted(path.name for path in target.iterdir()) == sorted(binaries.PROGRAMS)
    assert [text.splitlines()[-1] for text in built] == [f"  {name} …" for name in binaries.PROGRAMS]
    assert re.fullmatch(rf"  {binaries.PROGRAMS[-1]}: \d+ s\n", capsys.readouterr().err)


def test_main_builds_nothing_where_nothing_can_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make test` continues, and the tests on the control plane are skipped for the same reason."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("MODELHOOKS_E2E", raising=False)
    binaries.main()
    assert capsys.readouterr().err == "no control plane: there is neither a Go toolchain nor KUBEBUILDER_ASSETS\n"
    monkeypatch.setenv("MODELHOOKS_E2E", "required")
    with pytest.raises(binaries.BinariesMissingError):
        binaries.main()


def test_cache_name_depends_on_the_module_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("kubernetes", "kwok"):
        (tmp_path / module).mkdir()
        for name in ("go.mod", "go.sum"):
            (tmp_path / module / name).write_text(name)
    monkeypatch.setattr(binaries, "TOOLS", tmp_path)
    monkeypatch.setattr(binaries, "go", lambda *_: "go1.0\nlinux\namd64\n")
    before = binaries._fingerprint(binaries._PACKAGES)
    assert binaries._fingerprint(binaries._PACKAGES) == before
    (tmp_path / "kwok" / "go.sum").write_text("another")
    assert binaries._fingerprint(binaries._PACKAGES) != before
