"""Make the CA and the serving certificate, and write them where they are needed.

The API server has to trust the CA to call the admission webhooks, Metacontroller to call the hooks, and the service has
to hold a certificate that the CA signed. Without options, everything is printed as YAML for

  kubectl apply --server-side --field-manager=modelhooks-certs --filename=-

which suits a first installation by hand. With --apply the command writes it through the API server, as the Job and the
CronJob of manifests/overlays/quickstart do: it keeps what is there, renews what is due, and writes nothing else.
With --out-dir it keeps plain files instead.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app import certs
from app.cli import trust
from app.cli.kubeapi import ApiError, Client, ConflictError
from app.installation import NAME, NAMESPACE
from app.kube import yaml
from app.settings import Settings

ATTEMPTS = 5
"""How often a write is tried that somebody else's write came before."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's arguments."""
    parser.add_argument("--apply", action="store_true", help="write through the API server of the cluster we run in")
    parser.add_argument("--out-dir", type=Path, metavar="DIR", help="keep ca.crt, ca.key, tls.crt and tls.key in DIR")
    parser.add_argument("--service", default=NAME, help="the Service's name (default: %(default)s)")
    parser.add_argument("--namespace", default=NAMESPACE, help="its namespace (default: %(default)s)")
    parser.add_argument("--secret", default="modelhooks-tls", help="the Secret's name (default: %(default)s)")
    parser.add_argument("--cluster-domain", help="default: $MODELHOOKS_CLUSTER_DOMAIN, or cluster.local")
    parser.add_argument("--san", action="append", default=[], metavar="NAME", help="one more DNS name or IP address")
    api = parser.add_argument_group("with --apply outside a pod")
    api.add_argument("--kube-api", metavar="URL", help="the API server")
    api.add_argument("--kube-ca-file", type=Path, metavar="FILE", help="its CA")
    api.add_argument("--kube-token-file", type=Path, metavar="FILE", help="a bearer token")


def run(args: argparse.Namespace) -> int:
    """Print, keep in a directory, or apply."""
    domain = Settings().cluster_domain if args.cluster_domain is None else args.cluster_domain
    names = [*certs.service_names(args.service, args.namespace, domain), *args.san]
    secret = trust.SecretName(args.namespace, args.secret)
    if args.apply:
        try:
            return apply(_client(args), trust.Clients.installed(), secret, names, datetime.now(UTC))
        except ApiError as error:
            print(f"modelhooks certs: {error}", file=sys.stderr)
            return 1
    if args.out_dir:
        return keep_in_directory(args.out_dir, names, datetime.now(UTC))
    bundle = certs.ensure(None, names, datetime.now(UTC))
    objects = [trust.secret(secret, bundle), *trust.declared(trust.Clients.installed(), bundle.trusted)]
    print(yaml.dump_all(objects), end="")
    return 0


def apply(client: Client, clients: trust.Clients, secret: trust.SecretName, names: Sequence[str], now: datetime) -> int:
    """Bring the Secret and everything that has to trust it to the certificates of now.

    The trust is written before the certificate that needs it: a new CA is known everywhere when it is first seen.
    """
    for attempt in range(ATTEMPTS):
        held = client.get(secret.path)
        if held is None:
            print(f"{secret.path} does not exist; the installation's manifests create it", file=sys.stderr)
            return 1
        current = trust.bundle_of(held)
        bundle = certs.ensure(current, names, now)
        written = trust.spread(client, clients, bundle.trusted)
        if bundle != current and not _write(client, secret, held, bundle, last=attempt + 1 == ATTEMPTS):
            continue
        for path in [*written, *([secret.path] if bundle != current else [])]:
            print(f"written: {path}")
        return 0
    raise AssertionError("the last attempt returns or raises")


def _write(client: Client, secret: trust.SecretName, held: dict[str, Any], bundle: certs.Bundle, *, last: bool) -> bool:
    """Write the Secret unless another run was faster: then its CA is the one to trust, and all starts again."""
    try:
        client.merge_patch(secret.path, trust.secret_patch(held, bundle))
    except ConflictError:
        if last:
            raise
        return False
    return True


def keep_in_directory(directory: Path, names: Sequence[str], now: datetime) -> int:
    """Keep the certificates as files, renewed when they are due."""
    directory.mkdir(parents=True, exist_ok=True)
    files = {key: directory / key for key in trust.SECRET_KEYS}
    held = {key: file.read_text() for key, file in files.items() if file.exists()}
    current = trust.bundle_from_texts(held)
    bundle = certs.ensure(current, names, now)
    if bundle != current:
        for key, text in trust.texts(bundle).items():
            files[key].touch(mode=0o600 if key.endswith(".key") else 0o644)
            files[key].write_text(text)
    return 0


def _client(args: argparse.Namespace) -> Client:
    if args.kube_api:
        return Client(args.kube_api, _text(args.kube_ca_file), _text(args.kube_token_file))
    return Client.in_cluster()


def _text(file: Path | None) -> str:
    return file.read_text().strip() if file else ""
