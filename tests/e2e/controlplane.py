"""A real Kubernetes control plane on loopback ports, with kwok in place of the kubelet.

    with ControlPlane(tmp_path) as cluster:
        cluster.kubectl("apply", "-f", "-", input=manifest)
        cluster.kubectl("wait", "--for=condition=Available", "deployment/web", TIMEOUT)

Nothing connects to other machines, and two control planes share only the programs.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import json
import os
import secrets
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import NameOID

from tests.e2e import binaries, objects
from tests.e2e.processes import PATIENCE, Process, ProcessFailedError, free_ports, wait_until

TIMEOUT = f"--timeout={PATIENCE:g}s"
"""The argument for commands of kubectl that wait."""
_HERE = Path(__file__).parent
_COMPONENTS = ("system:kube-controller-manager", "system:kube-scheduler", "kwok")
_ADMIN = "admin"
_ADMINS = ("system:masters",)
_LOOPBACK = "127.0.0.1"
_SERVICES = "10.96.0.0/16"
_SERVICE_ADDRESS = "10.96.0.1"  # of the Service kubernetes: the first of _SERVICES

# Writes with both bodies, reads with the name only: enough to see which user wrote or read what.
_AUDIT_POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": list(_COMPONENTS)},
        {"level": "None", "userGroups": ["system:unauthenticated"]},
        {"level": "RequestResponse", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "None", "nonResourceURLs": ["*"]},
        {"level": "Metadata", "verbs": ["get"]},
        {"level": "None"},
    ],
}


class KubectlError(AssertionError):
    """kubectl exited with a code other than 0; the message has the command and its output."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.returncode = done.returncode
        self.stdout = done.stdout
        self.stderr = done.stderr
        super().__init__(f"{' '.join(done.args)}: code {done.returncode}\n{done.stderr}{done.stdout}")


class ControlPlane:
    """The control plane as a context manager; all its files are in `workdir`.

    `controllers` limits the controllers that kube-controller-manager runs. `users` adds users with their groups, beside
    the predefined cluster administrators `admin` (for the tests) and `metacontroller`. `audit` replaces the default
    audit policy. `address` is the address of the API server; set it if pods must reach it. `controller_flags` are
    additional flags of kube-controller-manager. `pods` is the network of kwok's pods.
    """

    def __init__(
        self,
        workdir: Path,
        *,
        controllers: bool | Sequence[str] = True,
        scheduler: bool = True,
        kwok: bool = True,
        audit: bool | Mapping[str, Any] = False,
        users: Mapping[str, Sequence[str]] | None = None,
        address: str = _LOOPBACK,
        pods: str = "10.0.0.1/24",
        controller_flags: Sequence[str] = (),
    ) -> None:
        self.workdir = workdir
        self.audit_log_path = workdir / "audit.log"
        self.ca_file = workdir / "pki" / "ca.crt"
        self._controllers = controllers
        self._scheduler = scheduler
        self._kwok = kwok
        self._audit = audit
        self._address = address
        self._pods = pods
        self._controller_flags = controller_flags
        administrators = (_ADMIN, "metacontroller", *_COMPONENTS)
        self._groups = {user: tuple(_ADMINS) for user in administrators} | {
            user: tuple(groups) for user, groups in (users or {}).items()
        }
        self._tokens = {user: secrets.token_hex(16) for user in self._groups}
        self._etcd_port, self._etcd_peer_port, self._port, self._kwok_port = free_ports(4)
        self._processes: list[Process] = []
        self._open = contextlib.ExitStack()
        self._client: httpx.Client | None = None

    # For tests

    @property
    def url(self) -> str:
        """The API server's address."""
        return f"https://{self._address}:{self._port}"

    @property
    def token(self) -> str:
        """The bearer token of `admin`."""
        return self._tokens[_ADMIN]

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of `admin`."""
        return self.kubeconfig_of(_ADMIN)

    def token_of(self, user: str) -> str:
        """Return the bearer token of a user."""
        return self._tokens[user]

    def kubeconfig_of(self, user: str) -> Path:
        """Return the kubeconfig of a user."""
        return self.workdir / "kubeconfig" / f"{user.replace(':', '-')}.yaml"

    def write_kubeconfig_of_account(self, namespace: str, account: str, file: Path) -> Path:
        """Write a kubeconfig with a token of a ServiceAccount; return the file."""
        token = self.kubectl("create", "token", account, "-n", namespace).stdout.strip()
        file.write_text(yaml.safe_dump(_kubeconfig(self.url, self.ca_file, account, token)))
        return file

    @property
    def client(self) -> httpx.Client:
        """An HTTP client of the user `admin`; do not close it."""
        if self._client is None:
            self._client = self._open.enter_context(self.client_of(_ADMIN))
        return self._client

    def client_of(self, user: str) -> httpx.Client:
        """Return a new HTTP client of a user; the caller closes it."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self._tokens[user]}"},
            verify=ssl.create_default_context(cafile=str(self.ca_file)),
            timeout=30.0,
            trust_env=False,
        )

    def kubectl(
        self,
        *arguments: str | Path,
        input: str | None = None,  # noqa: A002 - the name that subprocess gave it
        check: bool = True,
        user: str = _ADMIN,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as a user; raise KubectlError if it fails, unless `check` is False."""
        home = self.workdir / "home"  # not the tester's: preferences and discovery cache must not influence tests
        environment = os.environ | {"HOME": str(home), "KUBECONFIG": str(self.kubeconfig_of(user))}
        command = [str(binaries.program("kubectl")), *(str(argument) for argument in arguments)]
        done = subprocess.run(command, input=input, text=True, capture_output=True, check=False, env=environment)
        if check and done.returncode:
            raise KubectlError(done)
        return done

    def shell(self, script: str) -> str:
        """Run a script of a documentation page by sh, with kubectl and the user `admin`; return its output."""
        path = f"{binaries.program('kubectl').parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {
            "PATH": path,
            "KUBECONFIG": str(self.kubeconfig),
            "HOME": str(self.workdir / "home"),
        }
        done = subprocess.run(["sh", "-eu", "-c", script], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{script}\n{done.stderr}{done.stdout}"
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """Return what `kubectl get ... -o json` prints, decoded."""
        return objects.get(self.client, *arguments)

    def install_crds(self, *files: Path) -> None:
        """Apply CRD files (server-side: some are too large for the annotation) and wait until they are served."""
        names = [argument for file in files for argument in ("-f", str(file))]
        self.kubectl("apply", "--server-side", "--force-conflicts", *names)
        self.wait_established(*names)

    def wait_established(self, *crds: str) -> None:
        """Wait until CRDs, given as kubectl arguments, are served.

        ``kubectl wait`` fails for a CRD without conditions.
        """
        wait = ("wait", "--for=condition=Established", TIMEOUT, *crds)
        wait_until(lambda: self.kubectl(*wait, check=False).returncode == 0, f"{crds} established")

    def create_namespace(self, name: str | None = None) -> str:
        """Create a namespace, with a new name by default, in which pods may be created; return the name."""
        name = name or f"e2e-{secrets.token_hex(4)}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        answer = self.client.post("/api/v1/namespaces", json=body)
        assert answer.is_success or answer.status_code == httpx.codes.CONFLICT, answer.text
        self._wait_for_service_account(name)
        return name

    def audit_events(self, user: str | None = None) -> Iterator[dict[str, Any]]:
        """Yield the complete entries of the audit log so far, in order; of one user if given."""
        with self.audit_log_path.open() as log:
            for line in log:
                if line.endswith("\n"):
                    event: dict[str, Any] = json.loads(line)
                    if user is None or event["user"]["username"] == user:
                        yield event

    def process(self, name: str) -> Process:
        """Return one of the running programs by its name."""
        return next(process for process in self._processes if process.name == name)

    def check(self) -> None:
        """Raise an error if any of the processes has ended."""
        for process in self._processes:
            process.check()

    # Start and stop

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start every process; return when the API server is ready and pods can run."""
        (self.workdir / "home").mkdir(parents=True, exist_ok=True)
        _write_pki(self.workdir / "pki", self._address)
        self._write_users()
        self._start_etcd()
        self._start_apiserver()
        if self._controllers:
            self._start_controllers()
        if self._scheduler:
            self._start_scheduler()
        if self._kwok:
            self._start_kwok()
        # Events about cluster-scoped objects are refused until the API server has created it.
        wait_until(lambda: self._exists("/api/v1/namespaces/default"), "the namespace default")
        self._wait_for_service_account("default")
        self.check()

    def stop(self) -> None:
        """Kill every process in reverse order; their state is not needed any more."""
        self._open.close()
        self._client = None
        while self._processes:
            self._processes.pop().kill()

    # Processes

    def _run(self, name: str, *arguments: str, config: Sequence[Path] = ()) -> Process:
        """Start one of the programs, with its log in the work directory."""
        argv = [binaries.program(name), *arguments, *(argument for path in config for argument in ("-c", path))]
        process = Process(name, argv, self.workdir / "logs" / f"{name}.log", os.environ | {"HOME": str(self.workdir)})
        self._processes.append(process)
        return process

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._etcd_peer_port))
        etcd = self._run(
            "etcd",
            f"--data-dir={self.workdir / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        )
        etcd.wait_ready(lambda: answers(f"{client}/readyz"))

    def _start_apiserver(self) -> None:
        pki = self.workdir / "pki"
        arguments = [
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            f"--bind-address={self._address}",
            f"--advertise-address={self._address}",
            f"--secure-port={self._port}",
            f"--tls-cert-file={pki / 'server.crt'}",
            f"--tls-private-key-file={pki / 'server.key'}",
            f"--token-auth-file={self.workdir / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki / 'service-accounts.key'}",
            f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
            f"--service-cluster-ip-range={_SERVICES}",
            # For aggregated metrics APIs, which ask who called the API server.
            f"--requestheader-client-ca-file={pki / 'ca.crt'}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki / 'front-proxy-client.crt'}",
            f"--proxy-client-key-file={pki / 'front-proxy-client.key'}",
        ]
        if self._address == _LOOPBACK:
            # The kubernetes Service would need an endpoint, which cannot be a loopback address.
            arguments.append("--endpoint-reconciler-type=none")
        if not self._runs("serviceaccount-controller"):
            # This plugin requires ServiceAccounts for pods, and no controller creates them.
            arguments.append("--disable-admission-plugins=ServiceAccount")
        if self._audit:
            policy = self.workdir / "audit-policy.yaml"
            policy.write_text(yaml.safe_dump(_AUDIT_POLICY if self._audit is True else dict(self._audit)))
            # blocking: a request is in the log before it is answered.
            arguments += [
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.audit_log_path}",
                "--audit-log-mode=blocking",
            ]
        context = ssl.create_default_context(cafile=str(self.ca_file))
        self._run("kube-apiserver", *arguments).wait_ready(lambda: answers(f"{self.url}/readyz", context))

    def _start_controllers(self) -> None:
        pki = self.workdir / "pki"
        names = ["*"] if self._controllers is True else [_controller(name) for name in self._named_controllers]
        self._run(
            "kube-controller-manager",
            *self._component("kube-controller-manager"),
            f"--controllers={','.join(names)}",
            f"--service-account-private-key-file={pki / 'service-accounts.key'}",
            f"--root-ca-file={self.ca_file}",
            # kwok's heartbeats are late on a busy machine; pods must not be evicted for that.
            "--node-monitor-grace-period=1h",
            "--concurrent-gc-syncs=5",
            *self._controller_flags,
        )

    def _start_scheduler(self) -> None:
        self._run("kube-scheduler", *self._component("kube-scheduler"))

    def _start_kwok(self) -> None:
        """Start kwok, a second time if it ends before it is ready: version 0.8 sometimes panics while it starts."""
        self.kubectl("apply", "-f", _HERE / "cluster.yaml")
        try:
            self._run_kwok().wait_ready(self._node_is_ready)
        except ProcessFailedError:
            if self._processes[-1].running:
                raise
            self._processes.pop()
            self._run_kwok().wait_ready(self._node_is_ready)

    def _run_kwok(self) -> Process:
        return self._run(
            "kwok",
            f"--kubeconfig={self.kubeconfig_of('kwok')}",
            "--manage-all-nodes=true",
            f"--cidr={self._pods}",
            f"--server-address=127.0.0.1:{self._kwok_port}",
            config=[*binaries.kwok_stages(), *sorted((_HERE / "stages").glob("*.yaml"))],
        )

    def _component(self, name: str) -> list[str]:
        """Return the flags shared by scheduler and controller manager; they serve nothing and need no certificate."""
        return [
            f"--kubeconfig={self.kubeconfig_of(f'system:{name}')}",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]

    # Helpers

    @property
    def _named_controllers(self) -> Sequence[str]:
        return () if isinstance(self._controllers, bool) else self._controllers

    def _runs(self, controller: str) -> bool:
        """Report whether kube-controller-manager runs a controller."""
        return self._controllers is True or controller in map(_controller, self._named_controllers)

    def _write_users(self) -> None:
        """Write the token file of the API server and a kubeconfig for each user."""
        lines = [
            f'{token},{user},{user},"{",".join(self._groups[user])}"\n' for user, token in sorted(self._tokens.items())
        ]
        (self.workdir / "tokens.csv").write_text("".join(lines))
        (self.workdir / "kubeconfig").mkdir(exist_ok=True)
        for user, token in self._tokens.items():
            self.kubeconfig_of(user).write_text(yaml.safe_dump(_kubeconfig(self.url, self.ca_file, user, token)))

    def _wait_for_service_account(self, namespace: str) -> None:
        if self._runs("serviceaccount-controller"):
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
            wait_until(lambda: self._exists(path), f"the default ServiceAccount of {namespace}")

    def _exists(self, path: str) -> bool:
        self.check()
        return self.client.get(path).status_code == 200

    def _node_is_ready(self) -> bool:
        nodes = self.client.get("/api/v1/nodes").raise_for_status().json()["items"]
        return bool(nodes) and all(_is_ready(node) for node in nodes)


def _controller(name: str) -> str:
    """Return kube-controller-manager's full name of a controller."""
    return name if name.endswith("-controller") else f"{name}-controller"


def _is_ready(node: Mapping[str, Any]) -> bool:
    """Report whether a node is ready and no longer has the taint of new nodes."""
    conditions = {condition["type"]: condition["status"] for condition in node["status"].get("conditions", [])}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def answers(url: str, verify: ssl.SSLContext | None = None) -> bool:
    """Report whether a health endpoint returns success."""
    try:
        return httpx.get(url, verify=verify or True, timeout=2.0, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _kubeconfig(url: str, ca_file: Path, user: str, token: str) -> dict[str, Any]:
    """Return a kubeconfig of one cluster and one user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "e2e",
        "clusters": [{"name": "e2e", "cluster": {"server": url, "certificate-authority": str(ca_file)}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": user, "namespace": "default"}}],
    }


def _write_pki(folder: Path, address: str = _LOOPBACK) -> None:
    """Write a CA, the API server's server and client certificates, and the signing key of service account tokens."""
    folder.mkdir(parents=True)
    ca_key, server_key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "e2e-ca")])
    ca = _certificate(ca_name, ca_name, ca_key, ca_key).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    names = x509.SubjectAlternativeName(
        [x509.DNSName("localhost")]
        + [x509.IPAddress(ipaddress.ip_address(ip)) for ip in dict.fromkeys((address, _LOOPBACK, _SERVICE_ADDRESS))]
        + [x509.DNSName(name) for name in ("kubernetes", "kubernetes.default.svc")]
    )
    server_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    server = _certificate(server_name, ca_name, server_key, ca_key).add_extension(names, critical=False)
    client_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "front-proxy-client")])
    client = _certificate(client_name, ca_name, client_key, ca_key)
    for name, builder in (("ca", ca), ("server", server), ("front-proxy-client", client)):
        signed = builder.sign(ca_key, hashes.SHA256())
        (folder / f"{name}.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    # Token signing requires RSA or certain curves; every version accepts RSA.
    account_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    _write_key(folder / "server.key", server_key)
    _write_key(folder / "front-proxy-client.key", client_key)
    _write_key(folder / "service-accounts.key", account_key)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, issuer_key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    """Return a builder with what all certificates share: a lifetime of a week, and the key identifiers."""
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=7))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def _write_key(path: Path, key: CertificateIssuerPrivateKeyTypes) -> None:
    """Write a private key as PEM, readable only by this user."""
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
