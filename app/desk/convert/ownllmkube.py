"""Write a user's own workload as LLMKube's Model and InferenceService: fields for parts of one container."""

from collections.abc import Mapping
from typing import Any

from app.desk.convert.account import DEFAULT_STRATEGIES, LABELS, POD, is_default
from app.desk.convert.counterparts import FAMILIES
from app.desk.convert.targets import PROBES, OwnTarget, pull_policy, put, remove, shown
from app.desk.convert.translate import Keys, overlap, path_of
from app.desk.convert.workloads import DATA
from app.kube.base import Json
from app.kube.reading.stored import without_nulls
from app.llmkube.inferenceservice.plan import PORT_NAME
from app.llmkube.names import service_labels
from app.llmkube.runtimes.flag import Flag
from app.llmkube.runtimes.registry import GENERIC, RUNTIMES
from app.workload.engines.engine import engine_named
from app.workload.engines.parse import Occurrence, Parsed, fraction_of, number_of

_ELSEWHERE = "LLMKube has no field for it; --to llmaz and --to kserve carry it"
_LIMITS = "LLMKube sets no limits but for GPUs; --to llmaz and --to kserve carry it"
_MOST_AT_LEAST = 10
"""The largest ``minReplicas`` of LLMKube."""
_TARGETS = {("Pods", "AverageValue"): "targetAverageValue", ("Resource", "Utilization"): "targetAverageUtilization"}
"""The fields of LLMKube's metrics."""


class LLMKube(OwnTarget):
    """A Model and an InferenceService; with runtime generic where the server is not one of LLMKube's, or not plain."""

    family = "llmkube"

    def selector(self) -> dict[str, str]:
        return service_labels(self.name)

    @property
    def makes_monitor(self) -> bool:
        return self.runtime.scraped

    def scaled_by(self, scaler: Json) -> bool:
        if scaler["kind"] != "HorizontalPodAutoscaler":
            return False
        spec, metrics = without_nulls(scaler["spec"]), []
        least = spec.get("minReplicas", 1)
        if "behavior" in spec or not 1 <= least <= _MOST_AT_LEAST:
            return False
        for metric in spec.get("metrics") or ():
            part = metric.get(metric["type"].lower()) or {}
            source, target = part.get("metric") or part, part.get("target") or {}
            field = _TARGETS.get((metric["type"], str(target.get("type"))), "")
            value = next((item for key, item in target.items() if key != "type"), None)
            if not field or "selector" in source or value is None:
                return False
            metrics.append({"type": metric["type"], "name": source["name"], field: value})
        most = spec["maxReplicas"]
        put(self.service, ("spec", "autoscaling"), {"minReplicas": least, "maxReplicas": most, "metrics": metrics})
        return True

    def port_of(self, written: int | str) -> int | str | None:
        """Return the name of the server's port, or a number that does not belong to another container."""
        containers = self.workload.document["spec"]["template"]["spec"]["containers"]
        ports = [(place, port) for place, container in enumerate(containers) for port in container.get("ports") or ()]
        named = [(n, port) for n, port in ports if written in (port.get("name"), port["containerPort"])]
        place, port = named[0] if named else (-1, dict[str, Any]())
        if place == self.workload.place and port["containerPort"] == self.server.port and isinstance(written, str):
            return PORT_NAME
        is_open = place == self.workload.place or (not named and isinstance(written, int))
        return port.get("containerPort", written) if is_open else None

    def write(self) -> None:
        family = FAMILIES["llmkube"]
        assert family.model is not None
        self.model = self.begin(family.model, is_service=False)
        self.service = self.begin(family.service, is_service=True)
        put(self.service, ("spec", "modelRef"), self.name)
        self.options: dict[Keys, Occurrence] = {}
        self.account.reasons[POD] = self.account.reasons[self.keys] = _ELSEWHERE
        self.runtime = RUNTIMES[self.server.name] if self._is_native() else GENERIC
        put(self.service, ("spec", "runtime"), self.runtime.name)
        self.rename(self.runtime.container)
        limit = self.workload.document["spec"].get("revisionHistoryLimit")
        if not is_default("spec.revisionHistoryLimit", limit):
            self.carry(("spec", "revisionHistoryLimit"), "revisionHistoryLimit", limit)
        self._pod()
        self._container()
        self._source()
        self._words()
        if not self.service["spec"].get("extraArgs", True):
            del self.service["spec"]["extraArgs"]

    def strategy(self, written: Json) -> str:
        if "hardware" not in self.model["spec"]:
            return "" if written in DEFAULT_STRATEGIES else "LLMKube has 25% for both; --to llmaz has its numbers"
        is_same = written.get("type") == "Recreate"
        return "" if is_same else "with a GPU, LLMKube ends all old pods before new ones start"

    def _is_native(self) -> bool:
        """Report whether a runtime of LLMKube starts this server, with its model."""
        server, scheme = self.server, self.workload.address.partition("://")[0]
        schemes = {"llamacpp": ("hf", "pvc", "https", "http"), "tgi": ("hf",)}.get(server.name, ("hf", "pvc"))
        takes_option = len(server.program) > 1 and server.program[0].startswith("/") and server.name == "vllm"
        if not server.is_plain or server.engine is None or scheme not in schemes:
            return False
        is_module = takes_option and server.program[1] == "-m"  # which reads no model without an option
        return not is_module and (scheme != "pvc" or self._model_mount() is not None)

    def _model_mount(self) -> str | None:
        """Return the volume that only has the model, which LLMKube mounts elsewhere; ``None`` if more is read of it."""
        container, model = self.workload.container, self.server.model
        places = {f"{mount['mountPath'].rstrip('/')}/": mount["name"] for mount in container.get("volumeMounts") or ()}
        place = max((path for path in places if f"{model}/".startswith(path)), key=len)
        texts = [*self.server.words, *((variable.get("value") or "") for variable in container.get("env") or ())]
        return None if any(place in text and model not in text for text in texts) else places[place]

    # The pod.

    def carry(self, keys: Keys, field: str, value: object) -> None:
        """Write a field of the service for a part of the workload."""
        path: Keys = ("spec", *field.split("."))
        put(self.service, path, value)
        self.account.carry(keys, f"{shown(self.service)} {path_of(path)}")
        self.placed[1, path] = keys

    def _pod(self) -> None:
        pod, metadata = self.workload.pod, self.workload.template.get("metadata") or {}
        for part, field in (("labels", "podLabels"), ("annotations", "podAnnotations")):
            if part in metadata:
                self.carry((*LABELS[:-1], part), field, metadata[part])
        if self.runtime is not GENERIC and self.workload.address.startswith("pvc://"):
            self._without_model_volume(pod)
        self._fields("pod", pod, POD)
        for name, written in (("podSecurityContext", pod), ("securityContext", self.workload.container)):
            if not written.get("securityContext"):
                self.add(self.service, ("spec", name), {})
        for place in range(len(pod["containers"])):
            if place != self.workload.place:
                reason = f"LLMKube runs one container; {_ELSEWHERE.partition('; ')[2]}"
                self.account.lose((*POD, "containers", place), reason)

    def _fields(self, kind: str, part: Json, keys: Keys) -> None:
        """Carry over the parts that have a dedicated field."""
        for name, value in part.items():
            if is_default(f"{kind}.{name}", value):
                self.account.same((*keys, name))
            elif name in DATA.llmkube[kind]:
                self.carry((*keys, name), DATA.llmkube[kind][name], value)

    def _without_model_volume(self, pod: Json) -> None:
        """Leave out the volume of the model, which LLMKube mounts by the Model's source."""
        volume, place = self._model_mount(), f"{shown(self.model)} spec.source"
        for part, name, keys in ((self.workload.container, "volumeMounts", self.keys), (pod, "volumes", POD)):
            for at in [at for at, entry in enumerate(part.get(name) or ()) if entry["name"] == volume]:
                self.account.carry((*keys, name, at), place)
            part[name] = [entry for entry in part.get(name) or () if entry["name"] != volume]

    def _container(self) -> None:
        container = self.workload.container
        names = {port["name"]: port["containerPort"] for port in container.get("ports") or () if "name" in port}
        numbered = {name: _numbered(container[name], names) for name in PROBES if container.get(name)}
        self._fields("container", {**container, **numbered}, self.keys)
        self.account.same((*self.keys, "name"), "containers are named by LLMKube")
        if container.get("imagePullPolicy") == pull_policy(container["image"]):
            self.account.same((*self.keys, "imagePullPolicy"))
        self._ports(container)
        self._resources(container.get("resources") or {})
        self._environment(container.get("env") or [])
        self._claims(container)

    def _claims(self, container: Json) -> None:
        """Write the claims of devices of the pod, if the server has them all."""
        claims = self.workload.pod.get("resourceClaims") or []
        used = (container.get("resources") or {}).get("claims") or []
        if claims and {claim["name"] for claim in claims} == {claim["name"] for claim in used}:
            put(self.model, ("spec", "hardware"), {"accelerator": "cuda", "gpu": {"resourceClaims": claims}})
            for keys in ((*POD, "resourceClaims"), (*self.keys, "resources", "claims")):
                self.account.carry(keys, f"{shown(self.model)} spec.hardware.gpu.resourceClaims")

    def _ports(self, container: Json) -> None:
        port = self.server.port or self.runtime.port
        put(self.service, ("spec", "endpoint", "port"), port)
        for place, opened in enumerate(container.get("ports") or ()):
            keys: Keys = (*self.keys, "ports", place)
            if opened["containerPort"] != port:
                self.account.lose(keys, f"LLMKube opens one port, {port}; --to llmaz and --to kserve carry others")
                continue
            self.account.carry((*keys, "containerPort"), f"{shown(self.service)} spec.endpoint.port")
            self.account.same((*keys, "protocol"))
            if opened.get("name", PORT_NAME) != PORT_NAME:
                self.account.lose((*keys, "name"), f"LLMKube calls the port {PORT_NAME}")
            else:
                self.account.same((*keys, "name"))

    def _environment(self, variables: list[Json]) -> None:
        env = []
        for place, variable in enumerate(variables):
            keys, source = (*self.keys, "env", place), (variable.get("valueFrom") or {}).get("secretKeyRef")
            if variable["name"] == "HF_TOKEN" and source and self.runtime.config:
                self.carry(keys, f"{self.runtime.config}.hfTokenSecretRef", source)
            else:
                env.append(variable)
                self.account.carry(keys, f"{shown(self.service)} spec.env")
        if env:
            put(self.service, ("spec", "env"), env)

    def _resources(self, resources: Json) -> None:
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name, value in {**limits, **requests}.items():
            maker = next((m for start, m in DATA.llmkube["gpus"].items() if name.startswith(start)), None)
            kinds = [kind for kind in ("requests", "limits") if name in (resources.get(kind) or {})]
            both = [(*self.keys, "resources", kind, name) for kind in kinds]
            if maker is not None:
                self._gpus(name, str(value), maker, both)
            elif name in ("cpu", "memory"):
                self.carry(both[0], f"resources.{name}", str(value))
                if kinds[-1] == "limits":
                    self.account.lose(both[-1], _LIMITS)
            elif name == "ephemeral-storage" and requests.get(name) == limits.get(name):
                for keys in both:
                    self.carry(keys, "resources.ephemeralStorage", str(value))

    def _gpus(self, name: str, count: str, maker: list[str], both: list[Keys]) -> None:
        if not count.isdecimal():
            return
        put(self.model, ("spec", "hardware"), {"accelerator": maker[0], "gpu": {"count": int(count)}})
        if maker[1] != "nvidia":
            put(self.model, ("spec", "hardware", "gpu", "vendor"), maker[1])
        if not name.endswith("/gpu"):
            put(self.model, ("spec", "hardware", "gpu", "resourceName"), name)
        self.placed[0, ("spec", "hardware")] = both[-1]
        self.account.carry(both[-1], f"{shown(self.model)} spec.hardware.gpu")
        if both[1:]:
            self.account.same(both[0], "the same as the limit")

    @property
    def gpus(self) -> int:
        return int(((self.model["spec"].get("hardware") or {}).get("gpu") or {}).get("count") or 0)

    # The model and the command line.

    def _source(self) -> None:
        scheme, _, rest = self.workload.address.partition("://")
        is_hub = scheme == "hf"
        address = (self.workload.address if "@" in rest else rest) if is_hub else self.workload.address
        native = self.runtime is not GENERIC
        self.address(self.model, ("spec", "source"), address if native or is_hub else self.nominal())
        if self.server.name != "llamacpp":
            self.add(self.model, ("spec", "format"), "safetensors")
        if native and is_hub and self.server.name in ("vllm", "sglang"):
            self.add(self.service, ("spec", "skipModelInit"), True)

    def _words(self) -> None:
        """Write the command line: options as fields, what remains as arguments."""
        if self.runtime is GENERIC:
            for name in ("command", "args"):
                if self.written(name):
                    self.carry((*self.keys, name), name, self.written(name))
            return
        parsed, carried = self.server.parsed, set[int]()
        assert parsed is not None
        for occurrence in parsed.occurrences:
            words = range(occurrence.at, occurrence.at + occurrence.width)
            if target := self._option(occurrence, parsed):
                carried |= {*words}
                for at in words:
                    self.account.carry(self.word_keys(at), target)
        extra = [at for at in range(len(self.server.words)) if at not in carried and not self._is_model(at)]
        put(self.service, ("spec", "extraArgs"), [self.server.words[at] for at in extra])
        for at in extra:
            self.account.carry(self.word_keys(at), f"{shown(self.service)} spec.extraArgs")
        self._program()
        self._name(parsed)
        divides = self.server.name in ("vllm", "sglang") and not parsed.gives("--tensor-parallel-size", "--tp")
        if self.gpus > 1 and divides:  # as many as GPUs otherwise
            self.add(self.service, ("spec", self.runtime.config, "tensorParallelSize"), 1)

    def _is_model(self, at: int) -> bool:
        """Report whether a word is vLLM's model without an option, and note where it is now."""
        parsed = self.server.parsed
        if self.server.name != "vllm" or parsed is None or [*parsed.strays[:1]] != [at] or parsed.gives("--model"):
            return False
        self.account.carry(self.word_keys(at), f"{shown(self.model)} spec.source")
        return True

    def _program(self) -> None:
        """Account for the words that start the server; an unknown image or program is kept."""
        program = self.server.program
        written = [(*self.keys, name, at) for name in ("command", "args") for at in range(len(self.written(name)))]
        places = (
            [(*self.keys, "command")] if self.server.in_script else written[: len(written) - len(self.server.words)]
        )
        is_stock = engine_named(self.workload.container["image"]) is not None
        is_usual = not program[0].startswith("/") if program and self.runtime.command else is_stock
        for keys in places:
            if is_usual:
                self.account.same(keys, "started by the runtime")
            else:
                self.carry(keys, "command", list(program))

    def _name(self, parsed: Parsed) -> None:
        """Let the server keep the model's name: SGLang gets the Model's, vLLM serves a path by that.

        llama.cpp takes a file of a repository by what is behind a colon, which a Model's source lacks.
        """
        is_path = self.server.name == "vllm" and self.workload.address.startswith("pvc://")
        added = []
        if (is_path or self.server.name == "sglang") and not parsed.gives("--served-model-name"):
            added = ["--served-model-name", self.server.model]
        elif (
            self.server.name == "llamacpp" and ":" in self.server.model and not parsed.gives("--hf-repo", "--model-url")
        ):
            added = ["--hf-repo", self.server.model]
        if added:
            self.service["spec"]["extraArgs"] += added
            self.added.append((shown(self.service), ("spec", "extraArgs"), added))

    def _option(self, occurrence: Occurrence, parsed: Parsed) -> str:
        """Write the field of an option. Return its place, or an empty string for one that stays an argument."""
        if not occurrence.option or occurrence.keys or len(parsed.all(occurrence.option)) > 1:
            return ""
        spelled = parsed.release.spellings.get
        is_model = occurrence.option in map(spelled, DATA.engines[self.server.name].models)
        if is_model or (occurrence.option == spelled("--revision") and "@" in self.workload.address):
            keeps = self.server.name == "llamacpp" and self.workload.address.startswith("hf://")
            return "" if keeps else f"{shown(self.model)} spec.source"
        variables = {variable["name"]: variable.get("value") for variable in self.workload.container.get("env") or ()}
        port = variables.get(occurrence.value.removeprefix("$(").removesuffix(")"), occurrence.value)
        if occurrence.option == spelled("--port") and port == str(self.server.port):
            return f"{shown(self.service)} spec.endpoint.port"
        layers = (
            number_of(parsed, occurrence.option) or 0
            if occurrence.option == spelled("--n-gpu-layers") and self.gpus
            else 0
        )
        if layers > 0:
            put(self.model, ("spec", "hardware", "gpu", "layers"), layers)
            return f"{shown(self.model)} spec.hardware.gpu.layers"
        for path, flag in self.runtime.flags.items():
            is_own = path.count(".") <= path.startswith(f"{self.runtime.config}.") and (self.gpus or not flag.needs_gpu)
            value = (
                _field_value(occurrence, parsed, flag) if occurrence.option in map(spelled, flag.spellings) else None
            )
            if is_own and value is not None:
                keys: Keys = ("spec", *path.split("."))
                put(self.service, keys, value)
                self.options[keys] = occurrence
                return f"{shown(self.service)} {path_of(keys)}"
        return ""

    def back(self, keys: Keys) -> bool:
        """Make an option that LLMKube refuses as a field an argument again."""
        option = next((candidate for candidate in self.options if overlap(candidate, keys)), None)
        if option is None:
            return False
        occurrence = self.options.pop(option)
        remove(self.service, option)
        for at in range(occurrence.at, occurrence.at + occurrence.width):
            self.service["spec"].setdefault("extraArgs", []).append(self.server.words[at])
            self.account.went[self.word_keys(at)] = [f"{shown(self.service)} spec.extraArgs"]
        return True


def _field_value(occurrence: Occurrence, parsed: Parsed, flag: Flag) -> object:
    """Return the field value that becomes this option again; ``None`` if no value does."""
    option = parsed.release.options[occurrence.option]
    value: object = occurrence.value or None
    if flag.value or option.type == "switch":
        value = (occurrence.is_on and occurrence.value == flag.value) or None
    elif option.type == "number":
        value = fraction_of(occurrence)
    elif option.is_whole:
        value = number_of(parsed, occurrence.option)
    elif flag.separator:
        value = occurrence.value.split(flag.separator)
    elif flag.is_list or (flag.choices and occurrence.value not in flag.choices):
        value = None
    return None if flag.positive and isinstance(value, int) and value < 1 else value


def _numbered(probe: Json, names: Mapping[str, Any]) -> Json:
    """Return a probe with the numbers of ports in place of names that LLMKube's container does not have."""
    result = dict(probe)
    for key, part in probe.items():
        if isinstance(part, dict) and part.get("port") in names:
            result[key] = {**part, "port": names[part["port"]]}
    return result
