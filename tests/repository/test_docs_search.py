"""The site's search finds a page by its title, by the words that it lists, and by those of readers' questions."""

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
minikube: tutorial | chat page: surroundings | openai client: tutorial | api key: one-address | stop a model: operations
differences from the operator: compatibility | conformance: compatibility | benchmark: sizing
kubernetes versions: compatibility install | high availability: operations
pods restart: operations migration | migrate from kserve: migration | roll back to the operator: migration
kserve v0.20: kserve | llminferenceserviceconfig: own-engine
migrate from llmkube: migration | ModelRouter: llmkube | cache claim: migration | helm uninstall: install
leaderworkerset: surroundings
list images: offline cli | private registry: offline sources | custom CA: own-ca | HF_ENDPOINT: sources | proxy: sources
argocd health: gitops | gitlab: ci | replicas drift: gitops | fluxcd: gitops | diff of a pull request: ci
ImagePullBackOff: troubleshooting | CUDA out of memory: troubleshooting | failed calling webhook: operations
the service is down: operations | pause reconciliation: operations
rbac: security | secrets: security | network policy: security | sbom: security | threat model: security
ROCm: hardware | Gaudi: hardware | TPU: hardware | MIG: hardware | resource claim: hardware
embedding: model-types | reranker: model-types | vision: model-types | whisper: model-types | lora: options
gpu quota: teams | kueue: teams | preemption: teams | rate limit: one-address | chargeback: teams
upgrade: install | downgrade: install | remove without losing models: install | delete crds: install
certificate renewal: operations
custom engine: own-engine | placeholders: own-engine | baseRefs: own-engine | defaults of all services: own-engine
render: cli
development setup: contributing | run the tests: contributing | add a field: contributing | add a runtime: contributing
debug: local
"""
"""Five questions of each of fourteen readers, in a few words, and the pages that answer it."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    return folder


def found(site: Path, queries: list[str]) -> dict[str, list[str]]:
    """Return the first three pages that each query finds, by their names."""
    (site / "queries.json").write_text(json.dumps(queries))
    command = ["node", "-", str(site), str(site / "queries.json")]
    done = subprocess.run(command, input=SCRIPT, capture_output=True, text=True, check=True)
    pages = json.loads(done.stdout)
    return {query: [page.rstrip("/").rpartition("/")[2] for page in pages[query]] for query in queries}


def test_the_words_of_a_question_find_its_answer(site: Path) -> None:
    rows = dict(row.strip().split(": ") for row in QUESTIONS.replace("\n", "|").split("|") if row.strip())
    assert len(rows) == 70
    answers = found(site, list(rows))
    assert {query: answers[query] for query, pages in rows.items() if not {*pages.split()} & {*answers[query]}} == {}


def test_a_page_is_found_by_its_title(site: Path) -> None:
    """Pages of few readers come later."""
    index = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    pages = [one for one in index if one["location"] and "#" not in one["location"]]
    titles = {one["title"]: Path(one["location"]).name for one in pages if one.get("boost", 1) == 1}
    assert len(titles) > len(SEARCH_BOOSTS)
    answers = found(site, list(titles))
    assert {title: answers[title] for title, page in titles.items() if page not in answers[title]} == {}


def test_a_page_is_found_by_its_words(site: Path) -> None:
    words = [(word, Path(page).stem) for page, listed in SEARCH_WORDS.items() for word in listed.split()]
    answers = found(site, [word for word, _ in words])
    assert [(word, page, answers[word]) for word, page in words if page not in answers[word]] == []
