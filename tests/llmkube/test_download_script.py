"""The downloader's script, run as in its container: as a process, against a real HTTP server."""

import hashlib
import hmac
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import msgspec
import pytest

from app.llmkube.download import EXIT_USELESS, EXIT_WRONG_SHA256, container, download, script
from app.llmkube.model.observed import Header
from app.llmkube.model.types import ModelSpec
from app.llmkube.source import parse, source_of
from app.settings import Settings
from tests.llmkube.gguf import ARRAY, F32, I8, I32, STRING, U8, U16, U32, U64, gguf, llama
from tests.service import NEVER
from tests.startedpods import HOSTILE, environment, expanded

pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="the script needs curl")

SCRIPT, JOB_SCRIPT = script(in_job=False), script(in_job=True)
WEIGHTS = b"GGUF" + (bytes(range(256)) * 4096)[4:]
"""A model of 1 MiB, of a version of GGUF that nobody reads."""
OTHERS, NEWER = b"GGUF" + WEIGHTS[:3:-1], b"GGUF, a newer model"


@dataclass
class Served:
    """The server's responses, and the requests that it received."""

    body: bytes = WEIGHTS
    etag: str = '"v1"'
    honours_if_range: bool = True
    ranges: bool = True
    stop_after: int = 0
    """Close the connection after this many bytes, once."""
    hang_after: int = 0
    """Stop sending after this many bytes, while the client waits."""
    fail_with: list[int] = field(default_factory=list)
    """Statuses of the next responses, before they succeed."""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    """Method, path and Range of each request."""
    headers: list[dict[str, str]] = field(default_factory=list)
    """Headers of each request, with names in lower case."""
    files: dict[str, bytes] = field(default_factory=dict)
    """Bodies by path; other paths return ``body``."""
    elsewhere: str = ""
    """The target of the redirect ``/away``."""
    more: dict[str, str] = field(default_factory=dict)
    """Further headers of each response, and of redirects."""
    failing: dict[str, str] = field(default_factory=dict)
    """Headers of the responses that fail."""
    status: int = 0
    """The status of all responses, without a body."""
    released: threading.Event = field(default_factory=threading.Event)


_REDIRECTS = {"/away": "", "/moved": "/model.gguf", "/elsewhere": "file:///etc/hostname"}
"""Targets by path; of an empty one ``elsewhere``."""


class Handler(BaseHTTPRequestHandler):
    served: Served

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_HEAD(self) -> None:
        self._answer(head=True)

    def do_GET(self) -> None:
        self._answer(head=False)

    def _answer(self, *, head: bool) -> None:
        served = self.served
        served.asked.append((self.command, self.path, self.headers.get("Range", "")))
        served.headers.append({name.lower(): value for name, value in self.headers.items()})
        body = served.files.get(self.path, served.body)
        if self.path in _REDIRECTS:
            self._redirect(_REDIRECTS[self.path] or served.elsewhere)
            return
        if served.fail_with or served.status:
            self.send_response(served.fail_with.pop(0) if served.fail_with else served.status)
            for name, value in {**served.failing, "Content-Length": "0"}.items():
                self.send_header(name, value)
            self.end_headers()
            return
        start, status = 0, 200
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        is_same = self.headers.get("If-Range", served.etag) == served.etag or not served.honours_if_range
        if match and served.ranges and is_same:
            start, status = int(match[1]), 206
        self.send_response(status)
        if served.etag:
            self.send_header("ETag", served.etag)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        for name, value in served.more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        if not head:
            self._send(body[start:])

    def _redirect(self, target: str) -> None:
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("ETag", '"the redirect has another"')
        for name, value in self.served.more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, body: bytes) -> None:
        served = self.served
        if served.stop_after:
            part, served.stop_after = body[: served.stop_after], 0
            self.wfile.write(part)
            self.close_connection = True
        elif served.hang_after:
            part, served.hang_after = body[: served.hang_after], 0
            self.wfile.write(part)
            self.wfile.flush()
            served.released.wait(30)
        else:
            self.wfile.write(body)


@dataclass
class Pod:
    """The directory and environment of a downloader's container."""

    directory: Path
    server: ThreadingHTTPServer
    served: Served
    script: str = JOB_SCRIPT

    @property
    def path(self) -> Path:
        return self.directory / "cache" / "key" / "m.gguf"

    @property
    def partial(self) -> Path:
        return self.path.with_name("m.gguf.tmp")

    def environment(self, target: str = "model.gguf", **extra: str) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "MODEL_SOURCE": f"http://127.0.0.1:{self.server.server_port}/{target}",
            "CACHE_DIR": str(self.path.parent),
            "MODEL_PATH": str(self.path),
            "TERMINATION_LOG": str(self.directory / "termination-log"),
            "RETRY_SECONDS": "0",
            **extra,
        }

    def run(self, target: str = "model.gguf", **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", self.script],
            env=self.environment(target, **extra),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def report(self) -> dict[str, object]:
        report: dict[str, object] = json.loads((self.directory / "termination-log").read_text())
        return report


@pytest.fixture(params=[SCRIPT, JOB_SCRIPT], ids=["service", "job"])
def pod(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pod]:
    served = Served()
    handler = type("Handler", (Handler,), {"served": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield Pod(tmp_path, server, served, request.param)
    served.released.set()
    server.shutdown()
    server.server_close()
    thread.join()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_it_downloads_and_reports(pod: Pod) -> None:
    """The file has its final name, no temporary file is left, and the termination message describes the file."""
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS
    assert not pod.partial.exists()
    assert pod.report() == {"size": len(WEIGHTS), "sha256": sha256(WEIGHTS), "etag": '"v1"'}


def test_a_file_that_is_there_costs_no_request(pod: Pod) -> None:
    """With IfNotPresent a file that exists causes no request (LK-2.9.5)."""
    pod.run()
    pod.served.asked.clear()
    assert pod.run().returncode == 0
    assert pod.served.asked == []
    assert pod.report()["size"] == len(WEIGHTS)


def killed_after(pod: Pod, size: int) -> None:
    """Run a pod and kill it after ``size`` bytes (a multiple of 4096, which curl writes at once)."""
    pod.served.hang_after = size
    process = subprocess.Popen(
        ["sh", "-c", pod.script], env=pod.environment(), stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + NEVER
        while not (pod.partial.exists() and pod.partial.stat().st_size >= size):
            assert time.monotonic() < deadline, "nothing was written"
            time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)
    assert not pod.path.exists()


def test_it_resumes_after_being_killed(pod: Pod) -> None:
    """If a pod is killed half-way, the next one resumes after the bytes on disk."""
    half = len(WEIGHTS) // 2
    killed_after(pod, half)
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS
    assert pod.served.asked[-1] == ("GET", "/model.gguf", f"bytes={half}-")


def test_a_broken_connection_is_resumed_by_the_same_pod(pod: Pod) -> None:
    pod.served.stop_after = 1000
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS
    assert [asked[2] for asked in pod.served.asked] == ["", "bytes=1000-"]


def test_bytes_of_an_older_file_are_not_continued(pod: Pod) -> None:
    """If the ETag changed between two attempts, the whole file is downloaded again."""
    killed_after(pod, 8192)
    pod.served.body, pod.served.etag = OTHERS, '"v2"'
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == OTHERS


def test_a_server_without_ranges_sends_everything_again(pod: Pod) -> None:
    pod.served.stop_after, pod.served.ranges = 1000, False
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS


def test_a_wrong_sha256_is_refused(pod: Pod) -> None:
    """A file with a wrong checksum is removed, and the exit code indicates the reason."""
    done = pod.run(MODEL_SHA256="0" * 64)
    assert done.returncode == EXIT_WRONG_SHA256
    assert list(pod.path.parent.glob("m.gguf*")) == []
    assert "wrong SHA-256" in done.stderr
    assert sha256(WEIGHTS) in done.stderr


def test_the_right_sha256_passes_in_any_case(pod: Pod) -> None:
    done = pod.run(MODEL_SHA256=sha256(WEIGHTS).upper())
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS


def test_a_spliced_file_is_fetched_again(pod: Pod) -> None:
    """A resumed file with a wrong checksum is downloaded once more from the beginning."""
    pod.path.parent.mkdir(parents=True)
    pod.partial.write_bytes(b"x" * 5000)
    done = pod.run(MODEL_SHA256=sha256(WEIGHTS))
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS


def test_a_present_file_with_another_sha256_is_replaced(pod: Pod) -> None:
    pod.path.parent.mkdir(parents=True)
    pod.path.write_bytes(b"an older model")
    done = pod.run(MODEL_SHA256=sha256(WEIGHTS))
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS


def test_an_empty_file_does_not_count(pod: Pod) -> None:
    pod.path.parent.mkdir(parents=True)
    pod.path.touch()
    assert pod.run().returncode == 0
    assert pod.path.read_bytes() == WEIGHTS


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_refusal_is_final(pod: Pod, status: int) -> None:
    """These statuses are not retried, because the response would be the same."""
    pod.served.fail_with = [status] * 9
    done = pod.run()
    assert done.returncode == EXIT_USELESS
    assert len(pod.served.asked) == 1
    assert str(status) in done.stderr


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_passing_trouble_is_tried_again(pod: Pod, status: int) -> None:
    pod.served.fail_with = [status, status]
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS


def test_it_gives_up_in_the_end(pod: Pod) -> None:
    """After five attempts the pod ends, so that the Job's back-off takes over."""
    pod.served.fail_with = [503] * 99
    done = pod.run()
    assert done.returncode == 1
    assert len(pod.served.asked) == 5


def test_on_change_keeps_an_unchanged_file(pod: Pod) -> None:
    """The ETag of the final response is compared; the ETag of a redirect never matches (LK-T-13)."""
    pod.run("moved")
    pod.served.asked.clear()
    assert pod.run("moved", REFRESH_POLICY="OnChange").returncode == 0
    assert [asked[0] for asked in pod.served.asked] == ["HEAD", "HEAD"]


def test_on_change_replaces_a_changed_file(pod: Pod) -> None:
    pod.run()
    pod.served.body, pod.served.etag = NEWER, '"v2"'
    done = pod.run(REFRESH_POLICY="OnChange")
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == NEWER
    assert pod.report()["etag"] == '"v2"'


def test_on_change_compares_lengths_without_etag(pod: Pod) -> None:
    pod.served.etag = ""
    pod.run()
    pod.served.asked.clear()
    assert pod.run(REFRESH_POLICY="OnChange").returncode == 0
    assert [asked[0] for asked in pod.served.asked] == ["HEAD"]
    pod.served.body = NEWER
    assert pod.run(REFRESH_POLICY="OnChange").returncode == 0
    assert pod.path.read_bytes() == NEWER


def test_on_change_keeps_what_it_has_when_the_server_is_gone(pod: Pod) -> None:
    """A pod that restarts while the server is down keeps the existing file."""
    pod.run()
    pod.served.fail_with = [503] * 99
    assert pod.run(REFRESH_POLICY="OnChange").returncode == 0
    assert pod.path.read_bytes() == WEIGHTS


def test_on_change_does_not_ask_about_a_pinned_file(pod: Pod) -> None:
    """A file with a checksum cannot change, so no request is sent."""
    pod.run(MODEL_SHA256=sha256(WEIGHTS))
    pod.served.asked.clear()
    assert pod.run(MODEL_SHA256=sha256(WEIGHTS), REFRESH_POLICY="OnChange").returncode == 0
    assert pod.served.asked == []


def test_a_redirect_cannot_leave_http(pod: Pod) -> None:
    """A redirect cannot make the downloader read local files."""
    done = pod.run("elsewhere")
    assert done.returncode == EXIT_USELESS
    assert not pod.path.exists()


def test_the_source_is_never_shell_code(pod: Pod, tmp_path: Path) -> None:
    """Shell commands and curl's URL patterns in a source are not interpreted."""
    marker = tmp_path / "marker"
    assert pod.run(f"model.gguf?$(touch%20{marker})`touch {marker}`;[1-3]{{a,b}}").returncode == 0
    assert not marker.exists()
    assert len(pod.served.asked) == 1
    assert pod.path.read_bytes() == WEIGHTS


def test_a_local_file_is_copied_and_verified(pod: Pod, tmp_path: Path) -> None:
    local = tmp_path / "local.gguf"
    local.write_bytes(WEIGHTS)
    extra = {"MODEL_SOURCE": "/mnt/local.gguf", "HOST_FILE": str(local)}
    assert pod.run(**extra, MODEL_SHA256="1" * 64).returncode == EXIT_WRONG_SHA256
    assert not pod.path.exists()
    done = pod.run(**extra, MODEL_SHA256=sha256(WEIGHTS))
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS
    assert pod.served.asked == []


def test_a_local_file_without_a_cache_says_what_is_wrong(pod: Pod) -> None:
    done = pod.run(MODEL_SOURCE="/mnt/local.gguf")
    assert done.returncode == EXIT_USELESS
    assert "cache" in done.stderr


def test_two_pods_download_once(pod: Pod) -> None:
    """If two pods start together, one downloads and the other waits for the file."""
    both = [
        subprocess.Popen(["sh", "-c", pod.script], env=pod.environment(), stderr=subprocess.DEVNULL) for _ in range(2)
    ]
    assert [process.wait(60) for process in both] == [0, 0]
    assert pod.path.read_bytes() == WEIGHTS
    assert len(pod.served.asked) == 1


def test_certificates_are_trusted_besides_the_systems(pod: Pod, tmp_path: Path) -> None:
    """curl's CA bundle begins with the image's certificates (LK-T-15)."""
    system, certificates = tmp_path / "system.pem", tmp_path / "certs"
    certificates.mkdir()
    system.write_text("SYSTEM\n")
    (certificates / "corporate.crt").write_text("CORPORATE\n")
    (certificates / ".hidden").write_text("HIDDEN\n")
    tools = tmp_path / "bin"
    tools.mkdir()
    spy = tools / "curl"
    spy.write_text(f'#!/bin/sh\ncat "$CURL_CA_BUNDLE" >{tmp_path}/bundle\nexec {shutil.which("curl")} "$@"\n')
    spy.chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    done = pod.run(CURL_CA_BUNDLE=str(system), CA_DIR=str(certificates), PATH=path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "bundle").read_text() == "SYSTEM\n\nCORPORATE\n"


@pytest.mark.parametrize(
    ("source", "sent"),
    [
        ("https://h/m.gguf?a=$b", "https://h/m.gguf?a=$b"),
        ("https://h/$(id).gguf", "https://h/$(id).gguf"),
        ("https://h/$(HOSTNAME)", "https://h/$$(HOSTNAME)"),
        ("https://h/a$$b", "https://h/a$$$$b"),
    ],
)
def test_a_source_reaches_the_script_as_it_is(source: str, sent: str) -> None:
    """Only ``$$`` and references in capitals are escaped; the variables of Services have such names."""
    job = container(download(ModelSpec(source=source), parse(source), "ns", "m", "key"), Settings())
    assert job["env"][0] == {"name": "MODEL_SOURCE", "value": sent}


def test_the_kubelet_leaves_the_script_as_it_is() -> None:
    """In commands, the kubelet replaces ``$$`` by ``$`` and expands ``$(NAME)``; the script has neither."""
    spec = ModelSpec(source="https://h/a$$b$(MODEL_PATH)", sha256="a" * 64, refresh_policy="OnChange")
    fetched = download(spec, parse(spec.source), "ns", "m", "key")
    job = container(fetched, Settings(llmkube_ca_cert_configmap="ca"))
    variables = {variable["name"]: variable["value"] for variable in job["env"]}
    assert "$$" not in SCRIPT
    assert not [name for name in variables if f"$({name})" in SCRIPT]
    assert variables["MODEL_SOURCE"] == "https://h/a$$$$b$$(MODEL_PATH)"
    assert list(variables)[:3] == ["MODEL_SOURCE", "CACHE_DIR", "MODEL_PATH"]


def script_of(source: str, *files: str, in_job: bool = True) -> str:
    """Return the script of a Model's downloader."""
    spec = ModelSpec(source=source, files=list(files))
    job = container(download(spec, source_of(spec), "ns1", "m", "key"), Settings(), in_job=in_job)
    return str(job["command"][2])


SHELLS = [shell for shell in ("bash", "dash") if shutil.which(shell)]
NAMES = sorted(set(re.findall(r"\$\(([-._a-zA-Z0-9]+)\)", JOB_SCRIPT + script_of("s3://b/k"))))
"""Functions and programs of the script whose output it reads, which are valid keys of a Secret."""


def started(pod: Pod, source: str, shell: str) -> subprocess.CompletedProcess[str]:
    """Run the container of a Model as a node does, on the test's directory; the Secret's keys are ``NAMES``."""
    spec = ModelSpec.model_validate({"source": source, "sourceSecretRef": {"name": "keys"}})
    job = container(download(spec, source_of(spec), "ns", "m", "key"), Settings(), in_job=pod.script == JOB_SCRIPT)
    given = dict.fromkeys(NAMES, f'"; touch {pod.directory}/ran; "')
    variables = environment(job, given)
    command = [expanded(word, {**given, **variables}) for word in job["command"]]
    moved = {name: value.replace("/models", str(pod.directory)) for name, value in variables.items()}
    return subprocess.run(
        [shell, *command[1:]],
        env={**moved, "PATH": os.environ["PATH"], "TERMINATION_LOG": str(pod.directory / "log"), "RETRY_SECONDS": "0"},
        cwd=pod.directory,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


job_only = pytest.mark.parametrize("pod", [JOB_SCRIPT], indirect=True, ids=["job"])


def test_the_job_runs_each_line_of_the_other_script() -> None:
    """What holds for any value in the Job's script holds in the script of serving pods."""
    lines = iter(JOB_SCRIPT.splitlines())
    assert [line for line in SCRIPT.splitlines() if line not in lines] == []


@job_only
@pytest.mark.parametrize("shell", SHELLS)
def test_any_value_reaches_the_script_as_it_is(pod: Pod, shell: str) -> None:
    """Neither the kubelet nor a shell changes a source, and no key of a Secret becomes a part of the script."""
    assert {"free", "impostor", "mktemp"} <= set(NAMES)
    here, pod.served.body = f"http://127.0.0.1:{pod.server.server_port}", NEWER
    for number, value in enumerate(HOSTILE):
        shutil.rmtree(pod.directory / "key", ignore_errors=True)
        done = started(pod, f"{here}/{number}?{value}", shell)
        asked = [path for _, path, _ in pod.served.asked if path.startswith(f"/{number}?")]
        assert done.returncode in (0, EXIT_USELESS), (value, done.stderr)
        assert not (pod.directory / "ran").exists(), value
        if done.returncode == 0 and "#" not in value:
            assert [unquote(path.encode("latin-1").decode().partition("?")[2]) for path in asked] == [value], (
                done.stderr
            )


@job_only
@pytest.mark.parametrize("shell", SHELLS)
def test_any_name_of_a_file_is_a_name(pod: Pod, shell: str) -> None:
    """A file of the node and a file of a repository: their names are neither patterns nor parts of the script."""
    for number, value in enumerate(name for name in HOSTILE if "\n" not in name):
        target = pod.directory / str(number) / value
        local = pod.directory / f"local {number}"
        local.write_bytes(NEWER)
        done = subprocess.run(
            [shell, "-c", pod.script],
            env=pod.environment(MODEL_PATH=str(target), HOST_FILE=str(local), CACHE_DIR=str(target.parent))
            | {"MODEL_SOURCE": f"/mnt/{value}"},
            cwd=pod.directory,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (value, done.stderr)
        assert target.read_bytes() == NEWER
        assert not (pod.directory / "ran").exists(), value


# Only in the Job's script.


def test_what_serving_pods_run_does_not_change() -> None:
    """The script is part of the pod template: a change to it would restart all pods that download."""
    assert sha256(SCRIPT.encode()) == "62ad4a6e33535b97072aa1f315a57256f2a16205280f6a167ed50f1f6c2e9bae"


def tool(directory: Path, name: str, text: str) -> str:
    """Return a PATH on which this program is replaced."""
    tools = directory / "bin"
    tools.mkdir(exist_ok=True)
    (tools / name).write_text(f"#!/bin/sh\n{text}\n")
    (tools / name).chmod(0o755)
    return f"{tools}:{os.environ['PATH']}"


def room(directory: Path, kibibytes: int) -> str:
    return tool(directory, "df", f"echo Filesystem; echo disk 9 9 {kibibytes} 99% /models")


@job_only
def test_a_server_that_ignores_if_range_cannot_mix_two_files(pod: Pod) -> None:
    """Most file servers written in Python do; the ETag of the part tells that the file is another one."""
    killed_after(pod, 8192)
    pod.served.body, pod.served.etag, pod.served.honours_if_range = OTHERS, '"v2"', False
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == OTHERS
    assert "changed meanwhile" in done.stderr


@job_only
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "an empty file"),
        (b"<!DOCTYPE html>\n<title>Sign in</title>", "a web page"),
        (b"\r\n<HTML><body>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "a Git LFS pointer"),
    ],
)
def test_what_is_no_model_is_refused(pod: Pod, body: bytes, words: str) -> None:
    pod.served.body = body
    done = pod.run()
    assert done.returncode == EXIT_USELESS
    assert f"the server sent {words}" in done.stderr
    assert not pod.path.exists()


HEADER = gguf(llama(), {"norm.weight": (64,)})
WHOLE = HEADER + bytes(-len(HEADER) % 32 + 256)
"""A GGUF file with its tensor, which begins at a multiple of 32 bytes."""


@job_only
@pytest.mark.parametrize(
    ("target", "body", "accepted"),
    [
        ("a.gguf?download=true", WHOLE, True),
        ("A.GGUF", b"PK\3\4 no model", False),
        ("a.gguf", b"\x1f\x8b\x08 coded", False),
        ("a.safetensors", struct.pack("<Q", 14) + b'{"a":{}}      ' + bytes(8), True),
        ("a.safetensors", struct.pack("<Q", 2**50) + b'{"a":{}}', False),
        ("a.safetensors", b"GGUF" + bytes(60), False),
        ("a.zip", b"PK\3\4 files", True),
        ("a.zip", b"GGUF", False),
        ("a.bin", b"anything", True),
        ("model", b"anything", True),
    ],
)
def test_a_file_begins_like_what_its_name_says(pod: Pod, target: str, body: bytes, accepted: bool) -> None:
    pod.served.body = body
    done = pod.run(target)
    assert done.returncode == (0 if accepted else EXIT_USELESS), done.stderr
    assert pod.path.exists() is accepted
    assert ("does not begin like" in done.stderr) is not accepted


@job_only
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("missing", [1, 100, 256])
def test_a_file_that_lacks_its_end_is_not_kept(pod: Pod, missing: int, shell: str) -> None:
    """A server that does not tell the length cannot tell a cut file from a whole one; the header can."""
    pod.served.body = WHOLE[:-missing]
    done = subprocess.run(
        [shell, "-c", pod.script], env=pod.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "the file is not whole: it has" in done.stderr
    assert not pod.path.exists()
    pod.served.body = WHOLE
    assert pod.run().returncode == 0


@job_only
@pytest.mark.parametrize(
    ("announced", "words"),
    [
        ({"X-Linked-Size": str(len(WEIGHTS) + 1)}, f"it has {len(WEIGHTS)} bytes, and the server announced"),
        ({"X-Linked-ETag": f'"{"0" * 64}"'}, f"and the server announced {'0' * 64}"),
    ],
    ids=["size", "hash"],
)
def test_a_file_is_what_the_hub_announces(pod: Pod, announced: dict[str, str], words: str) -> None:
    """The Hub tells size and SHA-256 where it redirects."""
    pod.served.more = announced
    done = pod.run("moved")
    assert done.returncode == 1
    assert words in done.stderr
    assert not pod.path.exists()
    pod.served.more = {"X-Linked-Size": str(len(WEIGHTS)), "X-Linked-ETag": f'"{sha256(WEIGHTS).upper()}"'}
    assert pod.run("moved").returncode == 0


@job_only
def test_another_kind_of_etag_is_no_hash(pod: Pod) -> None:
    pod.served.more = {"X-Linked-ETag": '"a3f1"'}
    assert pod.run("moved").returncode == 0


@job_only
@pytest.mark.parametrize("name", ["Last-Modified", "Content-Range"])
def test_other_signs_of_another_file_count_as_well(pod: Pod, name: str) -> None:
    """Some servers keep the ETag of the earlier file, and tell another date or length with the part."""
    pod.served.more = {"Last-Modified": "Sat, 28 Nov 2026 10:00:00 GMT"}
    killed_after(pod, 8192)
    pod.served.body, pod.served.honours_if_range = OTHERS, False
    if name == "Last-Modified":
        pod.served.more = {"Last-Modified": "Sun, 29 Nov 2026 10:00:00 GMT"}
    else:
        pod.served.body = OTHERS + bytes(1000)
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == pod.served.body
    assert "changed meanwhile" in done.stderr


@job_only
def test_an_answer_without_a_file_is_none(pod: Pod) -> None:
    killed_after(pod, 8192)
    pod.served.status = 204
    done = pod.run()
    assert done.returncode == EXIT_USELESS
    assert "the server answered HTTP 204, and sent no file" in done.stderr
    assert not pod.path.exists()


@job_only
def test_a_coded_file_is_refused(pod: Pod) -> None:
    """The server is asked for none, and one that codes it all the same sends other bytes than the file's."""
    pod.served.more = {"Content-Encoding": "gzip"}
    done = pod.run("weights")
    assert done.returncode == EXIT_USELESS
    assert "Content-Encoding" in done.stderr
    assert pod.served.headers[-1]["accept-encoding"] == "identity"


@job_only
@pytest.mark.parametrize(("status", "seconds"), [(429, "1"), (503, "2")])
def test_a_server_that_asks_to_wait_is_waited_for(pod: Pod, status: int, seconds: str) -> None:
    pod.served.fail_with, pod.served.failing = [status], {"Retry-After": seconds}
    before = time.monotonic()
    done = pod.run()
    assert done.returncode == 0, done.stderr
    assert f"the server asks to wait (HTTP {status}); trying again in {seconds} s" in done.stderr
    assert time.monotonic() - before >= int(seconds)


@job_only
@pytest.mark.parametrize("asked", ["99999999999999999999", "Wed, 21 Oct 2026 07:28:00 GMT", "-5", ""])
def test_no_server_makes_a_job_wait_for_long(pod: Pod, tmp_path: Path, asked: str) -> None:
    slept = tmp_path / "slept"
    path = tool(tmp_path, "sleep", f"echo $1 >> {slept}")
    pod.served.fail_with, pod.served.failing = [429], {"Retry-After": asked}
    assert pod.run(PATH=path).returncode == 0
    assert slept.read_text() == ("900\n" if asked.isdecimal() else "0\n")


@job_only
def test_what_the_hub_says_of_a_refusal_is_quoted(pod: Pod) -> None:
    pod.served.fail_with, pod.served.failing = [403], {"X-Error-Message": "Access to model org/name is restricted."}
    done = pod.run()
    assert done.returncode == EXIT_USELESS
    assert done.stderr.endswith("model-downloader: the server says: Access to model org/name is restricted.\n")


@job_only
def test_a_file_larger_than_the_room_is_not_begun(pod: Pod, tmp_path: Path) -> None:
    """The length is known from the response, and a retry would fail until space is freed."""
    done = pod.run(PATH=room(tmp_path, 1023))
    assert done.returncode == EXIT_USELESS
    assert f"the volume is full: 0 of {len(WEIGHTS)} bytes are there, and {1023 * 1024} more have room" in done.stderr
    assert len(pod.served.asked) == 1
    assert pod.run(PATH=room(tmp_path, 1024)).returncode == 0


@job_only
def test_a_part_that_is_there_needs_no_room(pod: Pod, tmp_path: Path) -> None:
    """Only the remaining bytes must fit; after the volume has grown, the download resumes."""
    killed_after(pod, len(WEIGHTS) // 2)
    short = pod.run(PATH=room(tmp_path, 511))
    assert short.returncode == EXIT_USELESS
    assert f"the volume is full: {len(WEIGHTS) // 2} of {len(WEIGHTS)} bytes are there" in short.stderr
    done = pod.run(PATH=room(tmp_path, 512))
    assert done.returncode == 0, done.stderr
    assert pod.path.read_bytes() == WEIGHTS


@job_only
def test_a_volume_that_fills_up_meanwhile_ends_the_download(pod: Pod, tmp_path: Path) -> None:
    """curl fails to write because another process filled the volume."""
    tool(tmp_path, "curl", f'{shutil.which("curl")} "$@"; exit 23')
    path = room(tmp_path, 0)
    done = pod.run(PATH=path)
    assert done.returncode == EXIT_USELESS
    assert "the volume is full" in done.stderr
    assert len(pod.served.asked) == 1


@job_only
def test_a_copy_has_to_fit(pod: Pod, tmp_path: Path) -> None:
    local = tmp_path / "local.gguf"
    local.write_bytes(WEIGHTS)
    done = pod.run(MODEL_SOURCE="/mnt/local.gguf", HOST_FILE=str(local), PATH=room(tmp_path, 1))
    assert done.returncode == EXIT_USELESS
    assert f"the volume is full: 0 of {len(WEIGHTS)} bytes" in done.stderr


OURS, OLD, SERVED = "8cc5f1f83d631cc0", "0123456789abcdef", "fedcba9876543210"


def with_files_of_others(pod: Pod) -> tuple[dict[str, str], Path]:
    """Create a Model's volume with files of two earlier sources and unrelated files; return variables and mount."""
    mount = pod.directory / "claim"
    others = ["lost+found", "notes", "0123456789ABCDEF", OLD[:15], OLD + "0", f".{OLD[1:]}", "g" + OLD[1:]]
    for name in (OLD, SERVED, *others, f"notes/{OLD}", f"{OURS}/{OLD}"):
        (mount / name).mkdir(parents=True, exist_ok=True)
        (mount / name / "m.gguf").write_bytes(b"weights")
    (mount / OURS / "m.gguf").unlink(missing_ok=True)
    (mount / "1111111111111111").write_bytes(b"a file")
    (mount / "2222222222222222").symlink_to(mount / "notes")
    return {"CACHE_DIR": str(mount / OURS), "MODEL_PATH": str(mount / OURS / "m.gguf")}, mount


def everything_below(mount: Path) -> set[str]:
    return {str(path.relative_to(mount)) for path in mount.rglob("*") if OURS not in path.parts or path.is_dir()}


@job_only
def test_files_of_earlier_sources_go_when_the_new_one_is_there(pod: Pod) -> None:
    """Only directories whose name is a cache key and not in KEEP_KEYS are removed."""
    paths, mount = with_files_of_others(pod)
    before = everything_below(mount)
    done = pod.run(**paths, KEEP_KEYS=f"{SERVED} 3333333333333333")
    assert done.returncode == 0, done.stderr
    assert everything_below(mount) == before - {OLD, f"{OLD}/m.gguf"}
    assert Path(paths["MODEL_PATH"]).read_bytes() == WEIGHTS
    assert f"removing {mount}/{OLD}" in done.stderr
    assert pod.report()["size"] == len(WEIGHTS)
    again = pod.run(**paths, KEEP_KEYS="")
    assert again.returncode == 0, again.stderr
    assert everything_below(mount) == before - {OLD, f"{OLD}/m.gguf", SERVED, f"{SERVED}/m.gguf"}
    assert Path(paths["MODEL_PATH"]).read_bytes() == WEIGHTS


def test_keeps_files_of_earlier_sources_by_default(pod: Pod) -> None:
    """Nothing is removed without KEEP_KEYS; a serving pod never removes files."""
    paths, mount = with_files_of_others(pod)
    before = everything_below(mount)
    assert pod.run(**paths, **({"KEEP_KEYS": ""} if pod.script == SCRIPT else {})).returncode == 0
    assert everything_below(mount) == before


@job_only
def test_a_failed_download_removes_nothing(pod: Pod) -> None:
    """A later download may fail too, so the existing files are kept."""
    paths, mount = with_files_of_others(pod)
    before = everything_below(mount)
    assert pod.run(**paths, KEEP_KEYS="", MODEL_SHA256="0" * 64).returncode == EXIT_WRONG_SHA256
    pod.served.fail_with = [404]
    assert pod.run(**paths, KEEP_KEYS="").returncode == EXIT_USELESS
    assert everything_below(mount) == before


@job_only
def test_what_cannot_be_removed_fails_no_download(pod: Pod, tmp_path: Path) -> None:
    """The directory may belong to another user."""
    paths, mount = with_files_of_others(pod)
    path = tool(tmp_path, "rm", f'case "$*" in *{OLD}) exit 1 ;; esac; exec {shutil.which("rm")} "$@"')
    done = pod.run(**paths, KEEP_KEYS="", PATH=path)
    assert done.returncode == 0, done.stderr
    assert f"{mount}/{OLD} cannot be removed" in done.stderr
    assert (mount / OLD).exists()
    assert not (mount / SERVED).exists()
    assert pod.report()["sha256"] == sha256(WEIGHTS)


@job_only
def test_fails_fast_if_the_server_is_unreachable(pod: Pod) -> None:
    """The message names the failure, and the Job's back-off retries it."""
    pod.server.shutdown()
    pod.server.server_close()
    done = pod.run(RETRY_SECONDS="30")
    assert done.returncode == 1
    assert "cannot connect (curl 7)" in done.stderr


# The header of a GGUF file, as read by the Job.

BUSYBOX = shutil.which("busybox")


@pytest.fixture(params=["system", pytest.param("busybox", marks=pytest.mark.skipif(not BUSYBOX, reason="no busybox"))])
def tools(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return a PATH with the machine's programs, or with busybox as in the Job's image."""
    if request.param == "system":
        return os.environ["PATH"]
    applets = tmp_path / "applets"
    applets.mkdir()
    for name in ("sh", "od", "awk", "sed", "cut", "tr", "wc", "cat", "sha256sum", "mkdir", "printf"):
        (applets / name).symlink_to(str(BUSYBOX))
    return str(applets)


def described(directory: Path, tools: str, body: bytes, script: str = JOB_SCRIPT) -> dict[str, object]:
    """Return the Job's report on an existing file."""
    path, log = directory / "cache" / "key" / "m.gguf", directory / "termination-log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    environment = {
        "PATH": tools,
        "MODEL_SOURCE": "http://127.0.0.1:1/m.gguf",
        "MODEL_PATH": str(path),
        "CACHE_DIR": str(path.parent),
        "TERMINATION_LOG": str(log),
    }
    shell = shutil.which("sh", path=tools) or "sh"
    subprocess.run([shell, "-c", script], env=environment, timeout=120, check=True, capture_output=True)
    message = log.read_bytes()
    assert len(message) < 2048, "the kubelet keeps 4096 bytes, and a part of a JSON object is none"
    assert message.isascii()
    report: dict[str, object] = json.loads(message)
    assert report["size"] == len(body)
    return report


TENSORS = {"token_embd.weight": (64, 32000), "blk.0.attn_q.weight": (64, 64), "output_norm.weight": (64,)}


def test_a_gguf_file_is_described(tmp_path: Path, tools: str) -> None:
    """The report has all fields of the status; parameterCount is the sum of all tensors' elements."""
    assert described(tmp_path, tools, gguf(llama(), TENSORS) + WEIGHTS)["gguf"] == {
        "fileVersion": 3,
        "architecture": "llama",
        "modelName": "Tiny Llama",
        "license": "apache-2.0",
        "contextLength": 4096,
        "embeddingSize": 64,
        "layerCount": 2,
        "headCount": 8,
        "headCountKv": 4,
        "fileType": 15,
        "tensorCount": 3,
        "parameterCount": 64 * 32000 + 64 * 64 + 64,
    }


def test_widths_and_windows_are_described(tmp_path: Path, tools: str) -> None:
    keys = {
        "llama__attention__key_length": (U32, 192),
        "llama__attention__value_length": (U32, 128),
        "llama__attention__sliding_window": (U32, 1024),
        "llama__attention__kv_lora_rank": (U32, 512),
    }
    header = described(tmp_path, tools, gguf(llama(**keys), TENSORS))["gguf"]
    assert isinstance(header, dict)
    assert {"keyLength": 192, "valueLength": 128, "slidingWindow": 1024, "kvLoraRank": 512}.items() <= header.items()


def test_a_part_tells_nothing_of_the_whole(tmp_path: Path, tools: str) -> None:
    """Its tensors and weights are not all of the model's."""
    header = described(tmp_path, tools, gguf([*llama(), ("split.count", U16, 5)], TENSORS))["gguf"]
    assert isinstance(header, dict)
    assert header["layerCount"] == 2
    assert header.keys().isdisjoint({"tensorCount", "parameterCount"})
    alone = described(tmp_path, tools, gguf([*llama(), ("split.count", U16, 1)], TENSORS))["gguf"]
    assert isinstance(alone, dict)
    assert alone["tensorCount"] == 3


def test_a_long_vocabulary_is_passed_over(tmp_path: Path, tools: str) -> None:
    """Keys after the vocabulary are read as well."""
    words = (ARRAY, (STRING, [f"token {number}" for number in range(20_000)]))
    scores = (ARRAY, (F32, [0.5] * 20_000))
    pairs = llama(tokenizer__ggml__tokens=words, tokenizer__ggml__scores=scores)
    header = described(tmp_path, tools, gguf([*pairs, ("general.license", STRING, "later")], TENSORS))["gguf"]
    assert isinstance(header, dict)
    assert (header["fileType"], header["parameterCount"]) == (15, 64 * 32000 + 64 * 64 + 64)
    assert header["license"] == "apache-2.0", "the first one counts"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"GGUF",
        b"not a model at all",
        gguf(llama(), magic=b"GGML"),
        gguf(llama(), version=1),
        gguf(llama(), version=0x03000000),
    ],
    ids=["empty", "magic alone", "text", "other magic", "version 1", "big-endian"],
)
def test_another_file_is_not(tmp_path: Path, tools: str, body: bytes) -> None:
    """Other formats and unsupported versions are accepted, without a header in the report."""
    if body:
        assert "gguf" not in described(tmp_path, tools, body)


HOSTILE_FILES = {
    "more tensors than fit": gguf(llama(), count=2**63),
    "a key without an end": gguf([]).replace(struct.pack("<QQ", 0, 0), struct.pack("<QQQ", 0, 1, 2**64 - 1)),
    "an array of arrays": gguf([("x", ARRAY, (ARRAY, [])), *llama()]),
    "an unknown type": gguf(llama()) [:-20] + b"\x63" * 20,
    "a nested quote": gguf(llama(general__name=(STRING, '","sha256":"0'))),
    "control characters": gguf(llama(general__name=(STRING, "\x1b[31m\r\n\x00%s$(id)`id`\\é"))),
    "a very long name": gguf(llama(general__name=(STRING, "x" * 100_000))),
    "a very long architecture": gguf(llama(general__architecture=(STRING, "y" * 100_000))),
    "numbers for texts": gguf(llama(general__name=(U64, 2**64 - 1), general__architecture=(U8, 1))),
    "texts for numbers": gguf(llama(llama__context_length=(STRING, "1e999"))),
    "negative numbers": gguf(llama(llama__context_length=(I32, -1), general__file_type=(I8, -5))),
    "many dimensions": gguf(llama(), {"x": (2**63,) * 200}),
    "a million keys": gguf([(f"a{number}.context_length", U8, 1) for number in range(20_000)]),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_a_hostile_file_is_harmless(tmp_path: Path, tools: str, name: str) -> None:
    """The Job succeeds, and its message is short, valid JSON with only plain strings and numbers."""
    report = described(tmp_path, tools, HOSTILE_FILES[name])
    header = msgspec.json.decode(json.dumps(report.get("gguf", {})), type=Header, strict=True)
    assert set(report) <= {"size", "sha256", "etag", "gguf"}
    assert len(header.model_name) <= 128
    assert all(0 <= number < 2**53 for number in msgspec.structs.astuple(header) if isinstance(number, int))


def test_any_part_of_a_file_is_harmless(tmp_path: Path, tools: str) -> None:
    """The Job also succeeds if the file is truncated or a byte is changed."""
    whole, chance = gguf(llama(), TENSORS), random.Random(7)
    for _ in range(40):
        end, place = chance.randrange(1, len(whole)), chance.randrange(len(whole))
        described(tmp_path, tools, whole[:end])
        described(tmp_path, tools, whole[:place] + bytes([chance.randrange(256)]) + whole[place + 1 :])


def test_no_more_than_the_beginning_is_read(tmp_path: Path, tools: str) -> None:
    """Only the first 32 MiB are read; the tensors after them are not counted. Here it is 32 KiB, which is faster."""
    assert JOB_SCRIPT.count(f" -N {32 << 20} ") == 1
    script = JOB_SCRIPT.replace(f" -N {32 << 20} ", f" -N {32 << 10} ")
    for padding, is_counted in ((31 << 10, True), (33 << 10, False)):
        pairs = [*llama(), ("padding", ARRAY, (U8, b"\0" * padding))]
        header = described(tmp_path, tools, gguf(pairs, TENSORS), script)["gguf"]
        assert isinstance(header, dict)
        assert header["architecture"] == "llama"
        assert ("parameterCount" in header) is is_counted


def test_serving_pods_do_not_read_it() -> None:
    """The script of serving pods is part of their template, which must not change."""
    assert "describe" in JOB_SCRIPT
    assert "describe" not in SCRIPT
    assert sha256(SCRIPT.encode()) == "62ad4a6e33535b97072aa1f315a57256f2a16205280f6a167ed50f1f6c2e9bae"


# Several files, and sources that require credentials.


@pytest.fixture
def bucket(pod: Pod) -> Pod:
    pod.script = script_of("s3://bucket/key", in_job=pod.script == JOB_SCRIPT)
    return pod


KEYS = {"AWS_ACCESS_KEY_ID": "key-id", "AWS_SECRET_ACCESS_KEY": 'sec"ret\\+/', "AWS_REGION": "eu-1"}


def signed(request: dict[str, str], method: str, path: str) -> bool:
    """Report whether a request is signed with ``KEYS`` (AWS Signature Version 4)."""
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=key-id/(\d{8})/eu-1/s3/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?"
        r"Signature=([0-9a-f]{64})",
        request.get("authorization", ""),
    )
    if match is None:
        return False
    day, names, signature = match.groups()
    headers = "".join(f"{name}:{request[name].strip()}\n" for name in names.split(";"))
    canonical = "\n".join([method, path, "", headers, names, request["x-amz-content-sha256"]])
    scope = f"{day}/eu-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", request["x-amz-date"], scope, sha256(canonical.encode())])
    key = f"AWS4{KEYS['AWS_SECRET_ACCESS_KEY']}".encode()
    for part in (day, "eu-1", "s3", "aws4_request", text):
        key = hmac.digest(key, part.encode(), "sha256")
    return key.hex() == signature


def test_an_object_of_a_bucket_is_asked_for_with_a_signature(bucket: Pod) -> None:
    """GET and HEAD are path-style and signed, with endpoint and keys of the Secret."""
    place = {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{bucket.server.server_port}/"}
    source = {"MODEL_SOURCE": "s3://bucket/some dir/m.gguf"}
    done = bucket.run(**place, **source)
    assert done.returncode == 0, done.stderr
    assert bucket.path.read_bytes() == WEIGHTS
    assert bucket.served.asked == [("GET", "/bucket/some%20dir/m.gguf", "")]
    assert signed(bucket.served.headers[0], "GET", "/bucket/some%20dir/m.gguf")
    assert "accept-encoding" not in bucket.served.headers[0], "a proxy may change it, and it would be signed"
    assert bucket.run(**place, **source, REFRESH_POLICY="OnChange").returncode == 0
    assert bucket.served.asked[1][0] == "HEAD"
    assert signed(bucket.served.headers[1], "HEAD", "/bucket/some%20dir/m.gguf")


def test_a_public_bucket_needs_no_keys(bucket: Pod) -> None:
    place = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{bucket.server.server_port}"}
    assert bucket.run(**place, MODEL_SOURCE="s3://bucket/m.gguf").returncode == 0
    assert "authorization" not in bucket.served.headers[0]


def test_a_session_token_is_signed_too(bucket: Pod) -> None:
    place = {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{bucket.server.server_port}"}
    bucket.run(**place, MODEL_SOURCE="s3://bucket/m.gguf", AWS_SESSION_TOKEN="for an hour")
    assert bucket.served.headers[0]["x-amz-security-token"] == "for an hour"
    assert signed(bucket.served.headers[0], "GET", "/bucket/m.gguf")


def test_reports_an_invalid_endpoint(bucket: Pod) -> None:
    done = bucket.run(**KEYS, AWS_ENDPOINT_URL="minio:9000", MODEL_SOURCE="s3://bucket/m.gguf")
    assert done.returncode == EXIT_USELESS
    assert "AWS_ENDPOINT_URL" in done.stderr


def test_keys_stand_in_no_command_line(bucket: Pod, tmp_path: Path) -> None:
    """Other processes of the node can read command lines."""
    seen = tmp_path / "arguments"
    recorder = tmp_path / "bin" / "curl"
    recorder.parent.mkdir()
    recorder.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >>{seen}\nexec {shutil.which("curl")} "$@"\n')
    recorder.chmod(0o755)
    place = {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{bucket.server.server_port}"}
    path = f"{recorder.parent}:{os.environ['PATH']}"
    assert bucket.run(**place, MODEL_SOURCE="s3://bucket/m.gguf", PATH=path).returncode == 0
    assert "key-id" not in seen.read_text()
    assert "ret" not in seen.read_text()


def several(
    pod: Pod, *files: str, place: str = "org/name/resolve/main/", key: str = "key", hub: bool = True, **extra: str
) -> subprocess.CompletedProcess[str]:
    """Run a Job or init container that fetches several files; with ``hub`` the server acts as the Hub."""
    here, directory = f"http://127.0.0.1:{pod.server.server_port}/", pod.directory / "cache" / key
    script = script_of("hf://org/name", *files, in_job=pod.script == JOB_SCRIPT)
    assert script.count("https://huggingface.co/") == 1
    environment = pod.environment(
        MODEL_SOURCE=f"{here}{place}",
        MODEL_PATH=str(directory / files[0]),
        MODEL_FILES="\n".join(files),
        CACHE_DIR=str(directory),
        **extra,
    )
    command = ["sh", "-c", script.replace("https://huggingface.co/", here) if hub else script]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_token_goes_to_the_hub_alone(pod: Pod) -> None:
    """The token is not sent to another server or to the target of a redirect."""
    pod.served.elsewhere = f"http://localhost:{pod.server.server_port}/model.gguf"
    assert several(pod, "away", place="", HF_TOKEN="secret").returncode == 0
    assert [headers.get("authorization") for headers in pod.served.headers] == ["Bearer secret", None]
    pod.served.headers.clear()
    assert several(pod, "m.gguf", hub=False, HF_TOKEN="secret").returncode == 0
    assert several(pod, "without.gguf").returncode == 0
    assert [headers.get("authorization") for headers in pod.served.headers] == [None, None]


def test_several_files_are_fetched_below_the_directory(pod: Pod) -> None:
    """Directories are created; the report has the total size and, from a Job, the first file's header."""
    header, prefix = gguf(llama(), {"norm.weight": (4,)}) + bytes(64), "/org/name/resolve/main"
    names = ("q/one.gguf", "two #.bin", "x/y/z")
    pod.served.files = {f"{prefix}/q/one.gguf": header, f"{prefix}/two%20%23.bin": b"two", f"{prefix}/x/y/z": b"zzzz"}
    done = several(pod, *names)
    assert done.returncode == 0, done.stderr
    assert [(pod.path.parent / name).read_bytes() for name in names] == [header, b"two", b"zzzz"]
    report = pod.report()
    assert report["size"] == len(header) + 7
    assert "sha256" not in report
    assert ("gguf" in report) is (pod.script == JOB_SCRIPT)
    pod.served.asked.clear()
    assert several(pod, *names).returncode == 0
    assert pod.served.asked == []


def test_one_file_of_a_repository_has_its_checksum(pod: Pod) -> None:
    done = several(pod, "m.gguf", MODEL_SHA256=sha256(WEIGHTS))
    assert done.returncode == 0, done.stderr
    assert pod.report() == {"size": len(WEIGHTS), "sha256": sha256(WEIGHTS), "etag": '"v1"'}
    (pod.path.parent / "m.gguf").unlink()
    assert several(pod, "m.gguf", MODEL_SHA256="0" * 64).returncode == EXIT_WRONG_SHA256


def test_a_file_that_is_missing_ends_it(pod: Pod) -> None:
    """The missing file is named, and the files after it are not requested."""
    pod.served.fail_with = [404]
    done = several(pod, "absent", "other")
    assert done.returncode == EXIT_USELESS
    assert "model-downloader: absent" in done.stderr
    assert [asked[1] for asked in pod.served.asked] == ["/org/name/resolve/main/absent"]


def test_files_of_earlier_sources_go_when_all_are_there(pod: Pod) -> None:
    """Old directories are removed only after all files are there; the repository's directories are kept."""
    if pod.script != JOB_SCRIPT:
        pytest.skip("only the Job removes files")
    cache, present = pod.directory / "cache", "1" * 16
    for key in ("2" * 16, "3" * 16):
        (cache / key).mkdir(parents=True)
    pod.served.fail_with = [404]
    assert several(pod, "a/b", key=present, KEEP_KEYS="3" * 16).returncode == EXIT_USELESS
    assert (cache / ("2" * 16)).is_dir()
    done = several(pod, "a/b", f"{'4' * 16}/c", key=present, KEEP_KEYS="3" * 16)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in cache.iterdir()) == [present, "3" * 16]
    assert sorted(path.name for path in (cache / present).iterdir()) == ["4" * 16, "a"]
