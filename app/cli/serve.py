"""Answer Metacontroller's hooks and the API server's admission reviews.

Every flag can be given as an environment variable too: MODELHOOKS_ and its name in capitals. A flag wins.
"""

import argparse
import gc

FLAGS = {
    "host": "address to listen on",
    "port": "port to listen on; 0 lets the system choose one",
    "tls-cert-file": "PEM file with the serving certificate, read again when it changes",
    "tls-key-file": "PEM file with its private key",
    "log-format": "json or text",
    "log-level": "debug, info, warning or error",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags; without one, the environment or the default holds."""
    for flag, text in FLAGS.items():
        parser.add_argument(f"--{flag}", help=text, default=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT."""
    from pydantic import ValidationError  # the command's help must not wait for it

    from app.settings import Settings

    given = {
        name: value for flag in FLAGS if (value := getattr(args, name := flag.replace("-", "_"), None)) is not None
    }
    try:
        settings = Settings(**given)
    except ValidationError as error:
        for detail in error.errors():
            print(f"modelhooks serve: {'.'.join(map(str, detail['loc']))}: {detail['msg']}")
        return 2
    gc.disable()  # nothing that is imported goes away again; run() switches it on
    from app.server.run import run as serve

    return serve(settings)
