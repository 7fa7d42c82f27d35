"""Make the CA and the serving certificate, and write them where they are needed.

The API server has to trust the CA to call the admission webhooks, Metacontroller to call the hooks, and the service has
to hold a certificate that the CA signed. Without options, everything is printed as YAML for

  kubectl apply --server-side --field-manager=modelhooks-certs --filename=-

which suits a first installation by hand. With --apply the command writes it through the API server, as the Job and the
CronJob of manifests/overlays/quickstart do: it keeps what is there, renews what is due, and writes nothing else.
With --out-dir it keeps plain files instead.
"""

import contextlib
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from app.certs import authority, trust
from app.certs.kubeapi import ApiError, Client, ConflictError
from app.cli import options
from app.desk.files import yaml
from app.installation import NAME, NAMESPACE
from app.settings import Settings

_PATH = click.Path(path_type=Path)
ATTEMPTS = 5
"""Number of attempts of a write that conflicts with other writes."""


@click.command(help=options.doc(__doc__))
@click.option("--apply", "through_api", is_flag=True, help="Write through the API server of the current cluster.")
@click.option("--out-dir", type=_PATH, metavar="DIR", help="Keep ca.crt, ca.key, tls.crt and tls.key in DIR.")
@click.option("--service", default=NAME, show_default=True, help="Name of the Service.")
@click.option("--namespace", default=NAMESPACE, show_default=True, help="Namespace of the Service and the Secret.")
@click.option("--secret", "secret_name", default="modelhooks-tls", show_default=True, help="Name of the Secret.")
@click.option("--cluster-domain", help="Default: $MODELHOOKS_CLUSTER_DOMAIN, or cluster.local.")
@click.option("--san", multiple=True, metavar="NAME", help="Additional DNS name or IP address.")
@click.option("--kube-api", metavar="URL", help="URL of the API server, with --apply outside a pod.")
@click.option("--kube-ca-file", type=_PATH, metavar="FILE", help="CA of the API server.")
@click.option("--kube-token-file", type=_PATH, metavar="FILE", help="Bearer token for the API server.")
def command(
    *,
    through_api: bool,
    out_dir: Path | None,
    service: str,
    namespace: str,
    secret_name: str,
    cluster_domain: str | None,
    san: tuple[str, ...],
    kube_api: str | None,
    kube_ca_file: Path | None,
    kube_token_file: Path | None,
) -> int:
    domain = Settings().cluster_domain if cluster_domain is None else cluster_domain
    names = [*authority.service_names(service, namespace, domain), *san]
    secret = trust.ObjectName("v1", "Secret", secret_name, namespace)
    if through_api:
        try:
            client = Client(kube_api, _text(kube_ca_file), _text(kube_token_file)) if kube_api else Client.in_cluster()
            return apply(client, secret, names, datetime.now(UTC))
        except ApiError as error:
            print(f"modelhooks certs: {error}", file=sys.stderr)
            return 1
    if out_dir:
        return keep_in_directory(out_dir, names, datetime.now(UTC))
    bundle = authority.ensure(None, names, datetime.now(UTC))
    objects = [trust.secret(secret, bundle), *trust.declared(bundle.trusted)]
    print(yaml.dump_all(objects), end="")
    return 0


def apply(client: Client, secret: trust.ObjectName, names: Sequence[str], now: datetime) -> int:
    """Update the certificates in the Secret, and the CA in everything that must trust it.

    If another run writes the Secret first, its CA is the one to trust, so all starts again. A Job may run before an
    installer creates the controllers, which is an error, so that the Job runs again.
    """
    controllers = [item.path for item in trust.trusting_objects() if item.kind == "CompositeController"]
    if not any(map(client.get, controllers)):
        print("no CompositeController of modelhooks exists; the installation's manifests create them", file=sys.stderr)
        return 1
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(ConflictError):
            return _apply(client, secret, names, now)
    return _apply(client, secret, names, now)


def _apply(client: Client, secret: trust.ObjectName, names: Sequence[str], now: datetime) -> int:
    """Write the CA to its clients before the certificate, so that none of them sees one of an unknown CA."""
    held = client.get(secret.path)
    if held is None:
        print(f"{secret.path} does not exist; the installation's manifests create it", file=sys.stderr)
        return 1
    current = trust.bundle_of(held)
    bundle = authority.ensure(current, names, now)
    written = trust.spread(client, bundle.trusted)
    if bundle != current:
        client.patch(secret.path, trust.secret_patch(held, bundle))
        written.append(secret.path)
    for path in written:
        print(f"written: {path}")
    return 0


def keep_in_directory(directory: Path, names: Sequence[str], now: datetime) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    files = {key: directory / key for key in trust.SECRET_KEYS}
    held = {key: file.read_text() for key, file in files.items() if file.exists()}
    current = trust.bundle_from_texts(held)
    if (bundle := authority.ensure(current, names, now)) != current:
        for key, text in trust.texts(bundle).items():
            files[key].touch(mode=0o600 if key.endswith(".key") else 0o644)
            files[key].write_text(text)
    return 0


def _text(file: Path | None) -> str:
    return file.read_text().strip() if file else ""
