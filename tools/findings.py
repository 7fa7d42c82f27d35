"""Generates the sections of ``docs/findings.md`` from the rules of findings and an example of each."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.desk.check import all_findings
from app.desk.cluster.offline import World
from app.desk.files.findings import Finding, rules
from app.desk.files.manifests import ManifestFiles
from app.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
CHAT = "examples/llmkube/quickstart.yaml"


@dataclass(frozen=True)
class Example:
    """A mistake in one of the examples, and its correction."""

    file: str
    wrong: str
    right: str
    place: str = ""
    """The lines of the file that ``right`` replaces, where it is not among them."""
    kubernetes: str = ""
    """The release of the cluster."""

    def findings(self, lines: str) -> list[Finding]:
        """Return the findings about the file with these lines at the place of the mistake."""
        text = (ROOT / self.file).read_text(encoding="utf-8")
        assert text.count(self.place or self.right) == 1, self
        reading = ManifestFiles()
        reading.add(text.replace(self.place or self.right, lines), Path(self.file).name, whole=True)
        return all_findings(reading, [], World(settings=Settings(kubernetes_release=self.kubernetes)))


_SERVICE = "apiVersion: inference.llmkube.dev/v1alpha1\nkind: InferenceService"
_REFERENCE = "  modelRef: smollm\n"
_MOUNT = "  extraVolumeMounts: [{name: cache, mountPath: /cache}]\n"
_ARGUMENTS = '        args: ["--max-model-len", "32768"]\n'
_MEMORY = "      memory: 24Gi\n"
_FLAVORS = "".join(f"      - name: {name}\n" for name in ("a10", "a10g", "a40", "l40", "l40s", "h100", "h200"))

EXAMPLES = {
    "yaml": Example(CHAT, "  contextSize 4096\n", "  contextSize: 4096\n"),
    "untyped": Example(CHAT, "kind: InferenceService", _SERVICE),
    "unknown-kind": Example(CHAT, "kind: InferenceServer", "kind: InferenceService"),
    "duplicate-object": Example("examples/kserve/canary.yaml", "  name: chat-stable\n", "  name: chat-canary\n"),
    "dangling-reference": Example(CHAT, "  modelRef: smolm\n", _REFERENCE),
    "unknown-field": Example(CHAT, "  contextSiz: 4096\n", "  contextSize: 4096\n"),
    "dropped-field": Example(
        CHAT,
        f"{_REFERENCE}  extraVolumes: [{{name: cache, emptyDir: {{mode: 448}}}}]\n{_MOUNT}",
        f"{_REFERENCE}  extraVolumes: [{{name: cache, emptyDir: {{}}}}]\n{_MOUNT}",
        place=_REFERENCE,
    ),
    "newer-value": Example(
        CHAT,
        f'{_REFERENCE}  env: [{{name: 2FA, value: "1"}}]\n',
        f'{_REFERENCE}  env: [{{name: TWO_FA, value: "1"}}]\n',
        place=_REFERENCE,
        kubernetes="1.31",
    ),
    "required": Example(CHAT, "  contextSize: 4096\n", "  modelRef: smollm\n  contextSize: 4096\n"),
    "wrong-type": Example(CHAT, '  contextSize: "4096"\n', "  contextSize: 4096\n"),
    "unsupported-value": Example(
        CHAT, f"{_REFERENCE}  runtime: llama.cpp\n", f"{_REFERENCE}  runtime: llamacpp\n", place=_REFERENCE
    ),
    "invalid-value": Example(CHAT, "    memory: 1 GB\n", "    memory: 1Gi\n"),
    "duplicate-value": Example(
        CHAT,
        f"{_REFERENCE}  extraVolumes: [{{name: cache, emptyDir: {{}}}}, {{name: cache, emptyDir: {{}}}}]\n{_MOUNT}",
        f"{_REFERENCE}  extraVolumes: [{{name: cache, emptyDir: {{}}}}]\n{_MOUNT}",
        place=_REFERENCE,
    ),
    "forbidden": Example(
        CHAT,
        f"{_REFERENCE}  extraVolumes: [{{name: cache, emptyDir: {{}}, configMap: {{name: settings}}}}]\n{_MOUNT}",
        f"{_REFERENCE}  extraVolumes: [{{name: cache, emptyDir: {{}}}}]\n{_MOUNT}",
        place=_REFERENCE,
    ),
    "too-long": Example(
        CHAT, "  name: smollm-chat-for-everybody-who-wants-to-try-it-before-the-larger-model\n", "  name: smollm-chat\n"
    ),
    "too-many": Example("examples/llmaz/flavors.yaml", f"{_FLAVORS}      - name: a100\n", "      - name: a100\n"),
    "no-effect": Example(CHAT, "  format: gguf\n  prefetch: true\n", "  format: gguf\n"),
    "contradiction": Example(
        "examples/kserve/one-node.yaml",
        _ARGUMENTS.replace("]", ', "--tensor-parallel-size", "4"]'),
        _ARGUMENTS,
    ),
    "combination": Example("examples/llmkube/too-large.yaml", _MEMORY, "      memory: 80Gi\n", place=_MEMORY),
    "advice": Example(CHAT, "    memory: 512m\n", "    memory: 1Gi\n"),
}


def page(text: str) -> str:
    """Return the page with its sections brought up to date."""
    introduction, _, _ = text.partition("\n## ")
    return "\n".join([introduction, *_sections()])


def _sections() -> Iterator[str]:
    for id_, rule in rules().items():
        yield f"## {id_}\n\n{rule['means']} {rule['advice']}\n"
        example = EXAMPLES[id_]
        findings = "".join(f"{finding}\n" for finding in example.findings(example.wrong) if finding.id == id_)
        release = f", with `--kubernetes {example.kubernetes}`" if example.kubernetes else ""
        yield f"In `{example.file}`{release}:\n\n```diff\n{_difference(example)}```\n\n```text\n{findings}```\n"


def _difference(example: Example) -> str:
    lines = difflib.ndiff(example.wrong.splitlines(), example.right.splitlines())
    return "".join(f"{line[0]}{line[2:]}\n" for line in lines if not line.startswith("?"))
