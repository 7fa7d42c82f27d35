"""Write a user's own workload as the objects of a family.

llmaz' Service and KServe's LLMInferenceService take the pod as it is; LLMKube is in :mod:`app.desk.convert.ownllmkube`.
"""

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from app.desk.cluster.kinds import kind_of
from app.desk.cluster.single import findings_of
from app.desk.convert.account import DEFAULT_STRATEGIES, LABELS, POD, Account, is_default, is_of_tool, mark_cluster
from app.desk.convert.counterparts import FAMILIES
from app.desk.convert.translate import Keys, Translation, overlap, path_of
from app.desk.convert.workloads import DATA, Workload, stock_image
from app.kserve.constants import MAIN, PUBLIC_PORT
from app.kserve.names import workload_selector
from app.kserve.spec.presets import LATEST
from app.kube.base import Json
from app.kube.names import fit
from app.llmaz import names as llmaz
from app.settings import Settings
from app.workload import parts
from app.workload.engines.images import ROOT

ANNOTATIONS: Keys = (*LABELS[:-1], "annotations")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
NEW = "-llm"
"""End of new objects' names, which their Deployments have, too: the workload has its own until it is deleted."""


class OwnTarget(ABC):
    """The objects of one family that are made of one workload."""

    family: str
    port: int | None = None
    """The only port to which the family's own Service sends requests; ``None`` for any."""

    def __init__(self, workload: Workload, *, renamed: bool) -> None:
        self.workload, self.server, self.account = workload, workload.server, Account(workload.manifest)
        self.title, name = FAMILIES[self.family].title, workload.manifest.name
        self.name = fit(name.replace(".", "-"), llmaz.NAME_ADVISED - len(NEW)) + NEW if renamed else name
        self.keys: Keys = (*POD, "containers", workload.place)
        """The place of the server's container."""
        self.new_port = self._new_port()
        self.added: list[tuple[str, Keys, object]] = []
        self.documents: list[Json] = []
        self.placed: dict[tuple[int, Keys], Keys] = {}
        """The part of the workload that a field has, by the number of its object."""

    def make(self, result: Translation) -> None:
        """Make the objects, and account for every leaf of the workload."""
        mark_cluster(self.account)
        self._change_pod()
        self.write()
        self._workload_spec()
        if reason := self.hidden() or self._refused():
            self.documents, self.added, self.account.went, self.account.reasons = [], [], {}, {(): reason}
        result.documents += self.documents
        result.added += [(name, path_of(keys), value) for name, keys, value in self.added]
        self.account.settle(result, f"{self.title} has no counterpart")

    def hidden(self) -> str:
        """Return why the server would not find its model; empty if it does."""
        return ""

    @abstractmethod
    def selector(self) -> dict[str, str]:
        """Return the labels by which Services find the new pods."""

    @abstractmethod
    def write(self) -> None:
        """Make the objects, and account for what they carry."""

    @property
    def makes_monitor(self) -> bool:
        """Report whether the family makes a PodMonitor."""
        return False

    def scaled_by(self, scaler: Json) -> bool:  # noqa: ARG002 - by a copy
        """Write an autoscaler as a field, if there is one for it."""
        return False

    def port_of(self, written: int | str) -> int | str | None:
        """Return how the new pods call a port to which a Service sends; ``None`` if they do not have it."""
        return self.new_port if written == self.server.port else written

    def strategy(self, written: Json) -> str:
        """Write the strategy of rollouts, or return why it is lost."""
        is_usual = written in DEFAULT_STRATEGIES
        return "" if is_usual else f"{self.title} leaves the strategy to Kubernetes; --to llmaz has its numbers"

    # For the families.

    def begin(self, kind: tuple[str, str], *, is_service: bool, scoped: bool = True) -> Json:
        """Add a new object, with the namespace and, where it is what serves, with labels and annotations."""
        written, metadata = self.workload.document["metadata"], dict[str, Any](name=self.name)
        document: Json = {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": {}}
        self.documents.append(document)
        for part in ("namespace", *(("labels", "annotations") if is_service else ())):
            if (values := untooled(written.get(part))) and (scoped or part != "namespace"):
                metadata[part] = values
                self.account.carry(("metadata", part), f"{shown(document)} metadata.{part}")
        self.account.carry(("metadata", "name"), f"{shown(document)} metadata.name")
        if is_service:  # an autoscaler needs a number to begin with
            document["spec"]["replicas"] = self.workload.document["spec"].get("replicas", 1)
            self.account.carry(("spec", "replicas"), f"{shown(document)} spec.replicas")
            self.placed[len(self.documents) - 1, ("spec", "replicas")] = ("spec", "replicas")
        return document

    def add(self, document: Json, keys: Keys, value: object) -> None:
        """Set a value that the workload does not have."""
        put(document, keys, value)
        self.added.append((shown(document), keys, value))

    def address(self, document: Json, keys: Keys, address: str) -> None:
        """Write where the model comes from; without an address one that nothing reads."""
        put(document, keys, address)
        if self.nominal() in address:
            self.added.append((shown(document), keys, address))

    def nominal(self) -> str:
        """Return a placeholder repository for a model that is in the container: nothing is fetched from it."""
        word = self.server.model.rstrip("/").rpartition("/")[2].removesuffix(".gguf")
        return f"local/{re.sub('[^A-Za-z0-9.-]+', '-', word).strip('-.') or self.workload.manifest.name}"

    def word_keys(self, at: int) -> Keys:
        """Return the path of a word of the options; for a word in a script, the path of the script."""
        written = [(name, n) for name in ("command", "args") for n in range(len(self.written(name)))]
        if self.server.in_script:
            return (*self.keys, written[-1][0])
        return (*self.keys, *written[len(written) - len(self.server.words) + at])

    def written(self, name: str) -> list[Any]:
        """Return a list of the server's container, as the user wrote it."""
        containers = self.workload.document["spec"]["template"]["spec"]["containers"]
        return containers[self.workload.place].get(name) or []

    def rename(self, name: str) -> None:
        """Give the server's container the name that the family asks for."""
        container, pod, old = self.workload.container, self.workload.pod, self.workload.container["name"]
        for other in (*pod["containers"], *(pod.get("initContainers") or ())):
            if other is not container and other.get("name") == name:
                other["name"] = f"{name}-2"
            for variable in other.get("env") or ():
                reference = (variable.get("valueFrom") or {}).get("resourceFieldRef") or {}
                if reference.get("containerName") == old:
                    reference["containerName"] = name
        container["name"] = name
        annotations = (self.workload.template.get("metadata") or {}).get("annotations") or {}
        annotations |= {key: name for key, value in annotations.items() if key == _DEFAULT_CONTAINER and value == old}

    # What the family refuses.

    def back(self, keys: Keys) -> bool:  # noqa: ARG002 - families without fields for options
        """Write a refused field in another way; return False if it has only one."""
        return False

    def _refused(self) -> str:
        """Take out what the family's rules refuse. Return why nothing valid is left, or an empty string."""
        for number, document in enumerate(self.documents):
            kind = kind_of(document)
            assert kind is not None
            while errors := findings_of(kind, document, Settings())[0]:
                where = (errors[0].place or errors[0].path).segments
                part = next((keys for n, keys in self.placed if n == number and overlap(keys, where)), None)
                if self.back(where):
                    continue
                if part is None:
                    return f"{self.title} refuses it: {errors[0]}"
                remove(document, part)
                self.account.lose(self.placed.pop((number, part)), f"{self.title} refuses it: {errors[0].body}")
        return ""

    # The workload around the pods.

    def _workload_spec(self) -> None:
        account, spec = self.account, self.workload.document["spec"]
        account.same(("spec", "selector"), _OWN)
        for name, value in spec.items():
            keys: Keys = ("spec", name)
            if name == "strategy" and (reason := self.strategy(value)):
                account.lose(keys, reason)
            elif is_default(f"spec.{name}", value) or (name == "strategy" and keys not in account.went):
                account.same(keys)
            elif name in DATA.reasons and keys not in account.went:
                account.lose(keys, DATA.reasons[name])
        for key in self.workload.own_labels & self.workload.written_labels.keys():
            account.same((*LABELS, key), _OWN)

    def _change_pod(self) -> None:
        """Take out what belongs to the old workload, and let the server listen where the family's Service sends."""
        metadata = self.workload.template.get("metadata") or {}
        metadata.pop("creationTimestamp", None)
        for part in ("labels", "annotations"):
            metadata[part] = untooled(metadata.get(part), self.workload.own_labels if part == "labels" else ())
        own_labels = {key: self.workload.written_labels.get(key) for key in self.workload.own_labels}
        for part in ("affinity", "topologySpreadConstraints"):
            relabel(self.workload.pod.get(part), own_labels, self.selector())
        self._claim_templates()
        for part in [part for part, value in metadata.items() if not value]:
            del metadata[part]
        if self.new_port != self.server.port:
            self._move_port(metadata.get("annotations") or {})
        elif self.port is not None and self.new_port != self.port:
            at = next(
                (n for n, port in enumerate(self.written("ports")) if port["containerPort"] == self.new_port), None
            )
            keys = (*self.keys, "name") if at is None else (*self.keys, "ports", at, "containerPort")
            words = f"the Service of {self.title} sends requests to {self.port} only: reach it by one of yours"
            self.account.lose(keys, words)

    def _claim_templates(self) -> None:
        """Mount the claim of a StatefulSet's only replica, or give each pod a claim that lives as long as it."""
        spec, keys = self.workload.document["spec"], ("spec", "volumeClaimTemplates")
        for template in spec.get("volumeClaimTemplates") or ():
            name = template["metadata"]["name"]
            source: Json = {"ephemeral": {"volumeClaimTemplate": {"spec": copy.deepcopy(template["spec"])}}}
            claim = f"{name}-{self.workload.manifest.name}-0"
            reason = "no family keeps a claim for each pod: each pod gets an empty one, which ends with it, unless you "
            reason += f"name one for all; the files of the first pod are on {claim}"
            if spec.get("replicas", 1) == 1:
                source = {"persistentVolumeClaim": {"claimName": claim}}
                reason = "no family makes a claim for each pod: the claim of the only pod is mounted"
            self.workload.pod.setdefault("volumes", []).append({"name": name, **source})
            self.account.lose(keys, reason)

    def _new_port(self) -> int:
        """Return the port on which the server is to listen: the family's, where nothing else knows the old one."""
        server, pod, container = self.server, self.workload.pod, self.workload.container
        if self.port is None or server.port == self.port or not (server.is_plain and server.engine):
            return server.port
        rest = {key: value for key, value in container.items() if key not in ("ports", "args", "command", *PROBES)}
        by_option = DATA.engines[server.name].port_variable  # which an option wins over
        rest["env"] = [item for item in rest.get("env") or () if item.get("name") != by_option]
        texts = [rest, *((container.get(name) or {}).get("exec") for name in PROBES)]
        is_named = any(re.search(rf"(?<![\w.]){server.port}(?![\w.])", str(text)) for text in texts)
        sidecars = [init for init in pod.get("initContainers") or () if init.get("restartPolicy")]
        is_shared = len(pod["containers"]) > 1 or pod.get("hostNetwork") or sidecars
        return server.port if is_named or is_shared else self.port

    def _move_port(self, annotations: dict[str, str]) -> None:
        container, old, new = self.workload.container, self.server.port, self.new_port
        reason = f"now {new}, the only port to which the Service of {self.title} sends requests"
        occurrence = self.server.parsed.last("--port") if self.server.parsed is not None else None
        if self.server.in_script or self.server.program:
            container["command"], container["args"] = list(self.server.program), list(self.server.words)
        words = container.setdefault("args", [])
        if occurrence is None:
            words += ["--port", str(new)]
            if not container.get("ports"):
                self.account.lose((*self.keys, "name"), f"its port is {reason}")
        else:
            place = occurrence.at + occurrence.width - 1
            words[place] = f"{words[place].partition('=')[0]}={new}" if occurrence.width == 1 else str(new)
            self.account.lose(self.word_keys(place), reason)
        for place_, port in enumerate(container.get("ports") or ()):
            if port["containerPort"] == old:
                port["containerPort"] = new
                self.account.lose((*self.keys, "ports", place_, "containerPort"), reason)
        for name in PROBES:
            for handler, part in (container.get(name) or {}).items():
                if isinstance(part, dict) and part.get("port") == old:
                    part["port"] = new
                    self.account.lose((*self.keys, name, handler, "port"), reason)
        for key in [key for key, value in annotations.items() if key.endswith("port") and value == str(old)]:
            annotations[key] = str(new)
            self.account.lose((*ANNOTATIONS, key), reason)


_OWN = "a label by which it finds its pods"
_DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"


class Llmaz(OwnTarget):
    """An OpenModel and a Service, whose template is the pod."""

    family, port = "llmaz", llmaz.PORT

    def selector(self) -> dict[str, str]:
        return llmaz.deployment_selector(self.name)

    def write(self) -> None:
        model = self.begin((llmaz.MODEL_API, "OpenModel"), is_service=False, scoped=False)
        service = self.begin((llmaz.INFERENCE_API, "Service"), is_service=True)
        if "namespace" in service["metadata"]:  # of which the OpenModel has none
            model["metadata"]["name"] = fit(f"{service['metadata']['namespace']}-{self.name}")
        self.add(model, ("spec", "familyName"), self.nominal().partition("/")[2][:50].lower().strip("-."))
        scheme, _, rest = self.workload.address.partition("://")
        if scheme in ("s3", "gs", "oss"):
            self.address(model, ("spec", "source", "uri"), self.workload.address)
        else:
            repository, _, revision = (rest if scheme == "hf" else self.nominal()).partition("@")
            self.address(model, ("spec", "source", "modelHub", "modelID"), repository)
            if revision:
                put(model, ("spec", "source", "modelHub", "revision"), revision)
        self.add(service, ("metadata", "annotations", llmaz.SKIP_LOADER), "true")
        put(service, ("spec", "modelClaims"), {"models": [{"name": model["metadata"]["name"]}]})
        self.rename(llmaz.RUNNER)
        keys: Keys = ("spec", "workloadTemplate", "workerTemplate")
        put(service, keys, self.workload.template)
        self.account.carry(("spec", "template"), f"{shown(service)} {path_of(keys)}")
        self.service = service
        if "strategy" not in self.workload.document["spec"] and self.workload.manifest.kind == "Deployment":
            self.add(service, _ROLLOUT, _ROLLING)

    def strategy(self, written: Json) -> str:
        numbers = {**_ROLLING, **(written.get("rollingUpdate") or {})}
        if written.get("type") == "Recreate":
            numbers = {"maxSurge": 0, "maxUnavailable": "100%"}
        put(self.service, _ROLLOUT, numbers)
        self.account.carry(("spec", "strategy"), f"{shown(self.service)} {path_of(_ROLLOUT)}")
        all_at_once = "llmaz only has rolling updates: all pods at once; LLMKube recreates pods with GPUs"
        return all_at_once if written.get("type") == "Recreate" else ""


_ROLLOUT: Keys = ("spec", "rolloutStrategy", "rollingUpdateConfiguration")
_ROLLING: Json = {"maxSurge": "25%", "maxUnavailable": "25%"}


class KServe(OwnTarget):
    """An LLMInferenceService whose template is the pod, laid over the preset."""

    family, port = "kserve", PUBLIC_PORT

    def selector(self) -> dict[str, str]:
        return workload_selector(self.name)

    def write(self) -> None:
        document = self.begin(FAMILIES["kserve"].service, is_service=True)
        address = self.workload.address
        scheme = address.partition("://")[0]
        usable = address if scheme in ("hf", "pvc", "s3", "gs", "https") else f"hf://{self.nominal()}"
        self.address(document, ("spec", "model", "uri"), usable.replace("@", ":", 1) if scheme == "hf" else usable)
        names = self.server.parsed.last("--served-model-name", "--alias") if self.server.parsed else None
        name = (names.value if names is not None else "") or self.server.model or self.name
        put(document, ("spec", "model", "name"), self.name if "$(" in name else name)
        self.add(document, ("spec", "storageInitializer", "enabled"), False)
        for part in ("labels", "annotations"):
            if values := (self.workload.template.get("metadata") or {}).get(part):
                put(document, ("spec", part), values)
                self.account.carry((*LABELS[:-1], part), f"{shown(document)} spec.{part}")
        self.rename(MAIN)
        if is_default("pod.terminationGracePeriodSeconds", self.workload.pod.get("terminationGracePeriodSeconds")):
            self.workload.pod.pop("terminationGracePeriodSeconds", None)  # the preset's is longer, as its hook waits
            self.account.same((*POD, "terminationGracePeriodSeconds"))
        put(document, ("spec", "template"), self.workload.pod)
        self.account.carry(POD, f"{shown(document)} spec.template")
        self._over_preset(document)
        put(document, ("spec", "template"), _literal(self.workload.pod))

    def hidden(self) -> str:
        mounts = {mount["mountPath"].rstrip("/") for mount in self.workload.container.get("volumeMounts") or ()}
        if not self.workload.container.get("command"):
            return "the command of the image is not known, and the preset has its own: write it; --to llmaz needs none"
        preset = {mount["mountPath"] for mount in _PRESET["containers"][0]["volumeMounts"]} - mounts
        path = next((directory for directory in preset if _is_below(self.server.model, directory)), "")
        is_mounted = any(_is_below(self.server.model, directory) for directory in mounts)
        reason = f"the preset has an empty directory at {path}, where the image has the model; --to llmaz carries it"
        return reason if path and not is_mounted else ""

    def _over_preset(self, document: Json) -> None:
        """Write out what the preset would set otherwise."""
        container, pod = self.workload.container, self.workload.pod
        preset_volumes = {volume["name"] for volume in _PRESET["volumes"]}
        for volume in pod.get("volumes") or ():
            if volume["name"] in preset_volumes:
                _rename_volume(pod, volume["name"], f"own-{volume['name']}")
        main: Keys = ("spec", "template", "containers", self.workload.place)
        self._command(document, main)
        variables = {item["name"]: item.get("value", "") for item in container.get("env") or ()}
        missing = [{"name": k, "value": v} for k, v in self._homes(variables).items() if k not in variables and v]
        if missing:
            container["env"] = [*(container.get("env") or ()), *missing]
            self.added.append((shown(document), (*main, "env"), missing))
        context = container.setdefault("securityContext", {})
        users = {**(pod.get("securityContext") or {}), **context}
        values = {"runAsNonRoot": bool(users.get("runAsNonRoot")), "allowPrivilegeEscalation": True}
        for name, value in values.items():
            if name not in context:
                self.add(document, (*main, "securityContext", name), value)
        if "imagePullPolicy" not in container:
            self.add(document, (*main, "imagePullPolicy"), pull_policy(container["image"]))
        self._probes(document, main)

    def _homes(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the directories that the server has without the preset: its home, and what comes from the Hub."""
        container, engine = self.workload.container, DATA.engines.get(self.server.name)
        image, cache = stock_image(container["image"]), engine.cache if engine is not None else ""
        user = {**(self.workload.pod.get("securityContext") or {}), **(container.get("securityContext") or {})}
        is_usual = image is not None and image.user == ROOT and not user.get("runAsUser")
        is_mounted = any(_is_below(cache, mount["mountPath"]) for mount in container.get("volumeMounts") or ())
        hub = f"{variables['HF_HOME'].rstrip('/')}/hub" if variables.get("HF_HOME") else ""
        hub = variables.get("HUGGINGFACE_HUB_CACHE") or hub or (cache if is_usual or is_mounted else "")
        return {"HOME": image.home if image is not None and is_usual else "", "HF_HUB_CACHE": hub}

    def _command(self, document: Json, main: Keys) -> None:
        """Write out the command of the image, in place of the preset's script."""
        container, server, image = self.workload.container, self.server, stock_image(self.workload.container["image"])
        if container.get("command"):
            return
        if server.program:
            container["command"], container["args"] = list(server.program), list(server.words)
        elif image is not None and image.entrypoint:
            takes_option = server.name == "vllm" and server.parsed is not None and server.parsed.gives("--model")
            command = "python3 -m vllm.entrypoints.openai.api_server" if takes_option else image.entrypoint
            self.add(document, (*main, "command"), command.split())

    def _probes(self, document: Json, main: Keys) -> None:
        """Write out the API's defaults in probes, and those that are absent: the preset has shorter ones."""
        container, port = self.workload.container, self.new_port or PUBLIC_PORT
        handler: Json = {"tcpSocket": {"port": port}}
        if self.server.engine is not None:
            handler = {"httpGet": {"path": "/health", "port": port}}
        numbers = {"periodSeconds": parts.STARTUP_PERIOD, "failureThreshold": parts.LOAD_ATTEMPTS}
        for name in PROBES:
            if container.get(name):
                container[name] = {**_PROBE, **container[name]}
            else:
                probe = {**_PROBE, **handler, "timeoutSeconds": 5, **(numbers if name == "startupProbe" else {})}
                self.add(document, (*main, name), probe)


_PRESET: Json = LATEST["config-llm-template"]["template"]
_PROBE = {"periodSeconds": 10, "timeoutSeconds": 1, "failureThreshold": 3}


def pull_policy(image: str) -> str:
    """Return the API server's default."""
    name = image.rpartition("/")[2]
    return "IfNotPresent" if "@" in name or (":" in name and not name.endswith(":latest")) else "Always"


def _literal(value: Any) -> Any:
    """Return a value whose strings are the same after KServe has read them as templates."""
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return value.replace("{{", '{{ "{{" }}') if isinstance(value, str) else value


def _is_below(path: str, directory: str) -> bool:
    return f"{path}/".startswith(f"{directory.rstrip('/')}/")


def untooled(value: Any, without: Collection[str] = ()) -> Any:
    """Return labels or annotations without those of tools; any other value as it is."""
    if not isinstance(value, dict):
        return value
    return {key: text for key, text in value.items() if key not in without and not is_of_tool(key)}


def shown(document: Json) -> str:
    return f"{document['kind']}/{document['metadata']['name']}"


def put(document: Json, keys: Keys, value: object) -> None:
    """Set a value, with the maps around it."""
    node: Any = document
    for step in keys[:-1]:
        node = node[step] if isinstance(step, int) else node.setdefault(step, {})
    node[keys[-1]] = value


def remove(document: Json, keys: Keys) -> None:
    node: Any = document
    for step in keys[:-1]:
        node = node[step]
    del node[keys[-1]]


def relabel(value: object, own: Json, new: dict[str, str]) -> None:
    """Let label selectors in a value that find the old pods find the new ones."""
    for item in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        labels = item.get("matchLabels") if isinstance(item, dict) else None
        if labels and all(own.get(key) == text for key, text in labels.items() if key in own) and own.keys() & labels:
            item["matchLabels"] = {**{k: v for k, v in labels.items() if k not in own}, **new}
        relabel(item, own, new)


def _rename_volume(pod: Json, old: str, new: str) -> None:
    mounts = [m for c in (*pod["containers"], *(pod.get("initContainers") or ())) for m in c.get("volumeMounts") or ()]
    for item in (*pod["volumes"], *mounts):
        if item["name"] == old:
            item["name"] = new
