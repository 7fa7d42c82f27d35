"""Answer Metacontroller's hooks and the API server's admission reviews.

Every flag can be given as an environment variable too: MODELHOOKS_ and its name in capitals. A flag wins.
"""

import gc

import click

from app.cli import options

FLAGS = {
    "host": "address to listen on",
    "port": "port to listen on; 0 lets the system choose one",
    "tls-cert-file": "PEM file with the serving certificate, read again when it changes",
    "tls-key-file": "PEM file with its private key",
    "log-format": "json or text",
    "log-level": "debug, info, warning or error",
}


@click.command(help=options.doc(__doc__))
def command(**flags: str | None) -> int:
    from pydantic import ValidationError  # the command's help must not wait for it

    from app.settings import Settings

    options_set: dict[str, object] = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = Settings(**options_set)
    except ValidationError as error:
        for detail in error.errors():
            print(f"modelhooks serve: {'.'.join(map(str, detail['loc']))}: {detail['msg']}")
        return 2
    gc.disable()  # nothing that is imported goes away again; run() switches it on
    from app.run import run as serve

    return serve(settings)


command.params += [click.Option([f"--{flag}"], help=text) for flag, text in FLAGS.items()]
