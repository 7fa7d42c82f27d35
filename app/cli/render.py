"""Print the children and status that manifests lead to, without a cluster and without the service.

Everything in the files is put into a cluster in memory, where Jobs complete and pods start at once; what is printed is
the state in which nothing changes any more. Related objects (a Model, a BackendRuntime, a ConfigMap) are taken from the
same files, or from --with.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import orjson

from app.cli.manifests import Manifest, ManifestError, read
from app.cli.offline import DEFAULT_NAMESPACE, desired, in_cluster, served, settled
from app.cli.simulate import Cluster
from app.cli.world import inner_key, outer_key
from app.kube.yaml import dump


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file, a directory, or - for standard input")
    parser.add_argument(
        "--with", dest="related", action="append", default=[], metavar="FILE", help="more related objects"
    )
    parser.add_argument("--namespace", default=DEFAULT_NAMESPACE, help="for objects that name none (default: default)")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="COMPONENT",
        help="an optional child kind that is not installed",
    )
    parser.add_argument("--output", choices=("yaml", "json"), default="yaml")


def run(args: argparse.Namespace) -> int:
    """Print children and status of each object of ours; 2 when a file cannot be read or holds none."""
    try:
        manifests, others = read(args.files), read(args.related)
    except ManifestError as error:
        print(f"modelhooks render: {error}", file=sys.stderr)
        return 2
    asked = [manifest for manifest in manifests if served(manifest)]
    if not asked:
        print("modelhooks render: no object of a kind that is served", file=sys.stderr)
        return 2
    try:
        cluster = settled([*manifests, *others], args.namespace, tuple(args.without))
        answers = [_answer(cluster, manifest, args.namespace) for manifest in asked]
    except ManifestError as error:
        print(f"modelhooks render: {error}", file=sys.stderr)
        return 2
    sys.stdout.write(_printed(answers, args.output))
    return 0


def _answer(cluster: Cluster, manifest: Manifest, namespace: str) -> dict[str, Any]:
    document = in_cluster(manifest, namespace)
    parent = cluster.objects[outer_key(document), inner_key(document)]
    children = [desired(child) for child in cluster.children(parent)]
    return {"parent": f"{manifest.kind}/{manifest.name}", "children": children, "status": parent["status"]}


def _printed(answers: list[dict[str, Any]], output: str) -> str:
    if output == "json":
        return orjson.dumps(answers, option=orjson.OPT_INDENT_2).decode() + "\n"
    parts = []
    for answer in answers:
        parts += [f"# child of {answer['parent']}\n{dump(child)}" for child in answer["children"]]
        parts.append(f"# status of {answer['parent']} once everything runs\n{dump({'status': answer['status']})}")
    return "---\n".join(parts)
