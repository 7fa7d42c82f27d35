"""The site's search finds a page by its title, by the words that it lists, and by readers' questions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.repository.test_readme import ROOT
from tools.site import SEARCH_BOOSTS, SEARCH_WORDS

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="the search is a program of the browser")

SCRIPT = """
const fs = require("fs"), vm = require("vm"), [folder, queries] = process.argv.slice(2);
const workers = folder + "/assets/javascripts/workers/";
const program = fs.readFileSync(workers + fs.readdirSync(workers).find(name => name.endsWith(".min.js")), "utf8");
let receive, answer;
const scope = { console, addEventListener: (_, listener) => receive = listener };
scope.postMessage = message => answer(message);
scope.self = scope;
vm.runInNewContext(program, scope);
const ask = message => new Promise(resolve => { answer = resolve; receive({ data: message }); });
(async () => {
  const index = JSON.parse(fs.readFileSync(folder + "/search/search_index.json", "utf8"));
  await ask({ type: 0, data: { ...index, options: {} } });
  const found = {};
  for (const query of JSON.parse(fs.readFileSync(queries, "utf8"))) {
    const { data } = await ask({ type: 2, data: query });
    found[query] = data.items.slice(0, 3).map(item => item[0].location.split("#")[0]);
  }
  console.log(JSON.stringify(found));
})();
"""
"""Asks the worker of the theme, as the page does, and prints the first three pages of each query."""

QUESTIONS = """
What do I need to install on my laptop and how much memory? tutorial readme
Can I use minikube or k3d instead of kind? tutorial local
Is there a chat page in the browser? tutorial surroundings
Which base_url does the OpenAI Python client need? tutorial
How do I stop a model without deleting it? operations autoscale
What is different from the Go operators? compatibility kserve llmkube
How is it tested against the upstream operators? compatibility
How many services can one installation handle, and how fast is it? fleet sizing
Which versions of KServe and Kubernetes are supported? compatibility install
What happens to my models when the service is down? operations
Will my pods restart when I migrate from KServe? migration
Which commands migrate 40 LLMInferenceServices from KServe v0.20? migration
How do I roll back to the KServe operator if the migration fails? migration
Which KServe features are not supported? compatibility kserve
What happens to my presets and LLMInferenceServiceConfigs? migration own-engine
Are the ModelRouter and GPUQuota of LLMKube 0.9 served? llmkube migration
Do I keep the model cache claim of LLMKube? migration settings
Does helm uninstall of llmaz delete my CRDs? migration install
How do I migrate LLMKube webhooks? migration
What happens to LeaderWorkerSets of llmaz? migration llmaz surroundings
How do I list all images for an air-gapped cluster? offline cli
How do I pull images from my private registry with a pull secret? offline sources
How do I trust my own CA for downloads? own-ca
How do I use a mirror of Hugging Face? sources
How do I download models behind an HTTP proxy? sources own-ca
Why is my Argo CD application progressing forever? gitops
How do I check a pull request with GitHub Actions or GitLab? ci
How do I keep Argo CD from resetting replicas? gitops
How do I use Flux health checks? gitops
Will this pull request restart pods? ci operations rollout
What do I do about the alert ModelNotReady? troubleshooting alerts
Why does my pod crash with CUDA out of memory? troubleshooting
kubectl apply says failed calling webhook? operations troubleshooting
What does the alert ModelhooksDown mean? metrics
How do I restart the pods of a model? rollout operations
Which RBAC rights does it need? security
Can it read my Secrets? security
Which NetworkPolicy do I need? security teams
How do I verify the signature and the SBOM? security
Do model pods mount a service account token? security
How do I use AMD MI300 GPUs? hardware
Does it run on Intel Gaudi? hardware
How do I serve on Google TPUs? hardware
How do I use MIG or time slicing? hardware
How do I use DRA resource claims? hardware
How do I serve an embedding model? model-types
How do I serve a reranker? model-types
How do I serve a vision model? model-types
How do I serve Whisper for speech? model-types
How do I add a LoRA adapter? options kserve
How do I limit GPUs per team with a quota? teams
How do I use Kueue queues? teams
How do I give a model priority over others? teams kserve
How do I rate limit users and require API keys? keys
How do I put a login before my models? keys
How do I limit tokens per client? keys
What does each team cost? teams
Does an upgrade restart my models? operations install
How do I downgrade? install
How do I uninstall it without losing models? install
Does helm uninstall delete the CRDs? install
How are certificates renewed? install operations
How do I write a BackendRuntime? own-engine
Which placeholders can arguments have? own-engine llmaz-runtimes
How do I write my own preset for KServe? own-engine
How do I set defaults for all LLMInferenceServices? own-engine
How do I test a preset without a cluster? own-engine cli
How do I set up a development environment? contributing local
How do I run the tests? contributing
Where do I add a field? contributing
How do I add a runtime? contributing
How do I debug against a real cluster? local
How do I migrate from my own Deployment of vLLM? own-deployment
How do I convert a docker run command? own-deployment cli
How do I upgrade the vLLM version of a running model? rollout
What happens when a GPU node fails or is replaced? rollout
The certificate of modelhooks has expired what now? operations install
Why are my pods refused by the resource quota? troubleshooting teams
Can users load LoRA adapters without restarting pods? options
How do I enable prefix caching? kserve options
How do I serve Llama 405B on multiple nodes? several-gpus
Can a model scale to zero and wake up on a request? autoscale
How do I run a canary with 10 percent of traffic? rollout kserve
How do I back up and restore models to a new cluster? teams
How do I deploy in a disconnected cluster without internet? offline
How do I install it on OpenShift? install
Which metrics can the autoscaler use? autoscale
Where are the logs of the model server? troubleshooting
How do I trace a request with OpenTelemetry? kserve
Does it run on ARM or Grace Hopper nodes? hardware
How do I enable tool calling? options
How do I get structured JSON output? options
How do I share one GPU between several models? hardware one-address
How do I download a model before the pods start? sources
How do I make cold starts faster? sources
How do I drain a GPU node for maintenance? rollout
What do I do when a model download is stuck? troubleshooting
How do I set environment variables of the server? one-gpu options
How do I limit the context length? options fit
How do I use a PersistentVolumeClaim with a model? sources
How do I spread replicas over zones? one-gpu
How do I serve the model under another name? one-gpu model-types options
How do I increase the shared memory /dev/shm? several-gpus
How do I pin the revision of a model? sources
How do I rotate the Hugging Face token? private-models
How do I measure GPU utilization? alerts
How do I serve gpt-oss? recipes
How do I run a load test or benchmark? load
How many requests per second can it take? load fleet sizing
Which parser does Kimi K2 need? recipes
How many GPUs does DeepSeek V4 need? recipes fit
container has runAsNonRoot and image will run as root? troubleshooting teams
volume node affinity conflict after the model download? troubleshooting sources
PVC bound to a node without GPU? sources troubleshooting
Does the OpenShift login stay after the migration? migration
Can vLLM use two MIG slices? hardware
Does validate check configs and baseRefs? own-engine ci
Why are there no warnings for a service whose pod comes from baseRefs? own-engine
nvidia.com/pgpu no known device has this name? hardware troubleshooting
Which device names of vendors are known, such as GA102GL_A10 of KubeVirt? hardware
unknown field spec.scaling.keda? autoscale troubleshooting
Can KServe scale with KEDA without WVA? autoscale
Do the images of KServe v0.21 work? kserve
llama.cpp OOMKilled after days because of the prompt cache? troubleshooting fit options
SGLang readiness probe fails health_generate? troubleshooting llmaz rollout
PermissionError Errno 13 getpwuid uid not found? troubleshooting teams
Vulkan has no permission for renderD128? hardware troubleshooting
401 gated repo although there is a token Secret? troubleshooting private-models
fit cannot know because of a command? fit
Can KEDA scale to zero with idleReplicaCount? autoscale kserve
HF_HUB_OFFLINE offline mode is enabled? troubleshooting offline
Why is prefill without a KV connector slow? several-gpus kserve options prefill-decode
How many LoRA adapters can a service have? options kserve fit
roll back image? rollout
How do I undo a bad version of vLLM? rollout
AMD MI300 with vLLM? hardware
Alert me when the queue grows? alerts
How do I limit who can call the model? keys teams
How do I restrict access to a model? keys teams
Why are 0/3 nodes available? troubleshooting
How do I keep other namespaces out by a NetworkPolicy? teams
How do I run two models on one GPU? hardware
Can a pod have half a GPU? hardware
How do I reach the model from outside the cluster? one-address
How do I put LiteLLM in front? one-address
Can the Service be a NodePort? one-address
Can I convert the Deployment of a Helm chart for vLLM? own-deployment
How do I serve a fine-tuned LoRA beside its base model? options
How do I serve a GGUF from an S3 bucket with credentials? sources
Where does convert put my HF_TOKEN? own-deployment cli
How do I give each team an API key? keys
"""
"""Questions of readers, and the pages of which one answers it."""

WORDS = """
ImagePullBackOff: troubleshooting
ErrImagePull: troubleshooting
huggingface token: private-models
HF_TOKEN: private-models
two gpus: several-gpus
out of memory: troubleshooting fit
OOMKilled: troubleshooting
pending pod: troubleshooting
model not ready: troubleshooting
crashloopbackoff: troubleshooting
401 unauthorized: private-models troubleshooting
403 forbidden: private-models troubleshooting
gated model: private-models
slow start: sources
cold start: sources
scale to zero: autoscale
multi node: several-gpus
lora adapters: options kserve
api key: keys
private registry: offline sources private-models
image pull secret: offline sources private-models
tool calling: options
long context: options
max model len: options
air gap: offline
helm wait: gitops
helm chart: install gitops
argo cd: gitops
flux: gitops
upgrade: install operations
uninstall: install
metrics: metrics
dashboard: alerts
grafana: alerts metrics
prometheus: surroundings metrics alerts
canary: rollout
https: one-address own-ca
tls: one-address own-ca
node selector: one-gpu
tolerations: one-gpu
spot: rollout
spot instances: rollout
quantization: options model-types fit
awq: options model-types fit
fp8: options model-types fit
gguf: model-types
webhook timeout: operations
admission webhook denied: troubleshooting
pvc: sources
s3 bucket: sources
shared memory: several-gpus
nccl timeout: several-gpus
tensor parallel: several-gpus
embeddings: model-types
rerank: model-types
whisper: model-types
vision: model-types
ollama: model-types
llama.cpp: model-types one-gpu own-engine
sglang: own-engine one-gpu options
vllm arguments: one-gpu options
environment variables: one-gpu
gpu not found: troubleshooting hardware
insufficient nvidia.com/gpu: troubleshooting
mig: hardware
time slicing: hardware
amd: hardware
tpu: hardware
cpu only: hardware
openshift: install
minikube: tutorial
kind: tutorial
quickstart: tutorial
hello world: tutorial
curl example: tutorial
first model: tutorial
rollback: install migration rollout
backup: teams
multi tenant: teams
quota: teams
rbac: security
network policy: security teams
service account: security private-models
sbom: security
logs: metrics troubleshooting
tracing: kserve
prefix cache: kserve options
disaggregated prefill: kserve prefill-decode
kv cache: options kserve
speculative decoding: options
deepseek: recipes several-gpus fit
llama 70b: several-gpus
how much gpu memory: fit
does it fit: fit
vram: fit
cuda out of memory: troubleshooting fit
ci pipeline: ci
github actions: ci
pre-commit: ci
kserve migration: migration
cert-manager: install
certificate expired: operations
proxy: own-ca sources
self signed: own-ca
gateway: one-address
ingress: one-address
openai client: tutorial one-address
chat ui: surroundings tutorial
open webui: surroundings
karpenter: surroundings
keda: autoscale
hpa: autoscale
readiness probe failed: troubleshooting
unschedulable: troubleshooting
download stuck: troubleshooting
drain node: rollout
rolling update: rollout
zero downtime: rollout
graceful shutdown: rollout
priority class: teams
kueue: teams
cost: teams
supported versions: compatibility install
telemetry: security kserve
pod evicted: troubleshooting
no space left on device: troubleshooting
connection refused: troubleshooting operations
rate limiting: keys
h100: fit several-gpus hardware
node affinity: one-gpu
how many replicas: autoscale
update model: rollout
change image: rollout own-engine options
delete model: install operations migration sources
json schema: cli options
reasoning parser: options
mistral: recipes fit private-models options
download from minio: sources
offline model: offline sources
resource limits: one-gpu teams
image tag: offline own-engine
timeout: troubleshooting operations one-address
stuck terminating: troubleshooting
pod restarts: troubleshooting
gpu utilization: alerts
tokens per second: alerts sizing
autoscaling: autoscale
b200: hardware fit
trust remote code: options
nvidia driver mismatch: troubleshooting hardware
model does not start: troubleshooting
502 bad gateway: troubleshooting
503: troubleshooting operations
pod stuck in ContainerCreating: troubleshooting
volume not bound: troubleshooting sources
change max replicas: autoscale
custom docker image: own-engine
vllm version: rollout
load balancing: one-address
fp8 kv cache: options
70b: fit several-gpus
expert parallel: several-gpus
serve from nfs: sources
hugging face mirror: sources
corporate proxy: own-ca
dry run: cli ci
kustomize: install gitops ci
delete namespace: teams install migration
json mode: options
multiple models one url: one-address
startup probe: troubleshooting one-gpu
how do i test locally: local tutorial
autoscale on queue length: autoscale
helm values: install
pod keeps restarting: troubleshooting
cannot pull image: troubleshooting offline
permission denied: troubleshooting
token expired: private-models
8 gpus: several-gpus
download weights once: sources
model from pvc: sources
scale down at night: autoscale
autoscaler does not scale: autoscale troubleshooting
basic auth: keys
rtx 4090: fit hardware
gemma: recipes fit one-gpu model-types options
reranker: model-types
blue green: rollout
proxy certificate: own-ca
gitlab: ci
flux helmrelease: gitops
kubernetes version: install compatibility
delete crds: install migration
cluster without internet: offline
server crashes: troubleshooting
image not found: troubleshooting
secret for hugging face: private-models
4 gpus: several-gpus
a100: fit hardware
save a model on a volume: sources
oauth: keys
transcribe audio: model-types
rolling restart: rollout
self-signed certificate: own-ca
pull request checks: ci
sync waves argocd: gitops
requirements: install tutorial
uninstall helm: install
no internet: offline
vision language model: model-types
load test: load
load testing: load
loadtest: load
benchmark: load
requests per second: load
stress test: load
capacity planning: load
concurrency: load
rps: load
api key per team: keys
restrict access to model: keys
networkpolicy: teams security
firewall: teams
gpu sharing: hardware
fractional gpu: hardware
half a gpu: hardware
mps: hardware
expose: one-address
external access: one-address
litellm: one-address
openai compatible endpoint: one-address
statefulset: own-deployment
docker run: own-deployment
docker compose: own-deployment
ttft: alerts
time to first token: alerts
latency dashboard: alerts
model pending: troubleshooting
"""
"""What users type into the search, in their own words, and the pages of which one comes first."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture(scope="module")
def answers(site: Path) -> dict[str, list[str]]:
    """Return the first three pages that each query finds, by their names. The search reads the pages once for all."""
    (site / "queries.json").write_text(json.dumps([*PAGES_OF_QUESTIONS, *PAGES_OF_WORDS, *titles(site), *LISTED]))
    command = ["node", "-", str(site), str(site / "queries.json")]
    done = subprocess.run(command, input=SCRIPT, capture_output=True, text=True, check=True)
    pages = json.loads(done.stdout)
    return {query: [page.rstrip("/").rpartition("/")[2] for page in pages[query]] for query in pages}


PAGES_OF_QUESTIONS = dict(row.split("? ") for row in QUESTIONS.splitlines()[1:])
PAGES_OF_WORDS = dict(row.split(": ") for row in WORDS.splitlines()[1:])
LISTED = [word for listed in SEARCH_WORDS.values() for word in listed.split()]


def titles(site: Path) -> dict[str, str]:
    """Return the pages by their titles, without those of few readers, which come later."""
    index = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    pages = [page for page in index if page["location"] and "#" not in page["location"]]
    return {page["title"]: Path(page["location"]).name for page in pages if page.get("boost", 1) == 1}


def test_a_question_finds_its_answer(answers: dict[str, list[str]]) -> None:
    assert len(PAGES_OF_QUESTIONS) == QUESTIONS.count("?")
    rows = PAGES_OF_QUESTIONS.items()
    assert {query: answers[query] for query, pages in rows if not {*pages.split()} & {*answers[query]}} == {}


def test_words_of_users_find_the_right_page_first(answers: dict[str, list[str]]) -> None:
    rows = PAGES_OF_WORDS.items()
    assert {query: answers[query] for query, pages in rows if not {*pages.split()} & {*answers[query][:1]}} == {}


def test_a_page_is_found_by_its_title(site: Path, answers: dict[str, list[str]]) -> None:
    assert len(titles(site)) > len(SEARCH_BOOSTS)
    assert {title: answers[title] for title, page in titles(site).items() if page not in answers[title]} == {}


def test_a_page_is_found_by_its_words(answers: dict[str, list[str]]) -> None:
    words = [(word, Path(page).stem) for page, listed in SEARCH_WORDS.items() for word in listed.split()]
    assert [(word, page, answers[word]) for word, page in words if page not in answers[word]] == []
