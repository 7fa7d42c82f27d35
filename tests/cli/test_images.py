"""``modelhooks images``: all images that an installation without internet access must copy."""

from __future__ import annotations

import yaml

from app import images
from app.cli.images import is_pinned
from tests.cli.files import Command, model, service
from tests.repository.test_readme import ROOT


def test_an_installation_is_listed(command: Command) -> None:
    result = command("images")
    assert result.status == 0
    assert result.out.splitlines() == [*images.INSTALLATION, *images.default_images()]
    assert all(map(is_pinned, result.out.splitlines()))


def test_the_images_of_the_installation_are_those_of_its_manifests() -> None:
    deployment = yaml.safe_load((ROOT / "manifests" / "base" / "deployment.yaml").read_text())
    service_image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    metacontroller = (ROOT / "manifests" / "metacontroller" / "kustomization.yaml").read_text()
    assert service_image == images.INSTALLATION[0]
    assert f"value: {images.INSTALLATION[1]}\n" in metacontroller


def test_the_pods_of_manifests_are_listed(command: Command) -> None:
    """Images of init containers and of the download Job are included."""
    file = command.file("all.yaml", model(), service({"image": "registry.example.com/server:1.2"}))
    rows = command("images", file, "--output", "json").json
    assert {"image": "registry.example.com/server:1.2", "pinned": True} in rows
    assert {"image": images.DOWNLOADER, "pinned": True} in rows
    assert images.VLLM not in {row["image"] for row in rows}


def test_an_object_with_errors_is_reported(command: Command) -> None:
    """Its images are missing from the list, which is incomplete."""
    result = command("images", command.file("all.yaml", model(), service({"replicas": -1})))
    assert result.status == 1
    assert "error: spec.replicas: Invalid value: -1" in result.err
    assert images.DOWNLOADER in result.out


def test_a_file_without_manifests_has_no_images(command: Command) -> None:
    result = command("images", command.file("empty.yaml"))
    assert (result.status, result.out) == (2, "")
    assert "the files have no manifest" in result.err


def test_what_is_not_pinned_is_a_finding(command: Command) -> None:
    result = command("images", command.file("all.yaml", model(), service({"image": "server:latest"})))
    assert result.status == 1
    assert "server:latest is not pinned; write a version or a digest" in result.err
    assert not is_pinned("registry:5000/server")
    assert is_pinned(f"server@sha256:{'0' * 64}")
