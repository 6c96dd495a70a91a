"""`unbraid explore`: a study or a run in the browser, with everything live."""

from pathlib import Path
from secrets import token_urlsafe
from typing import Annotated

import typer

from unbraid._utils.optional import require
from unbraid.cli._trust import TrustCode, TrustData, trusted
from unbraid.cli.show import say


def explore(
    folder: Annotated[Path, typer.Argument(metavar="STUDY|RUN", help="Folder of a study, or of a run.")],
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.")] = 8765,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Allow a --host that other machines can reach.")
    ] = False,
    trust_code: TrustCode = None,
    trust_data: TrustData = None,
) -> None:
    """Serve the live page of a study or a run, on localhost.

    Ctrl-C ends it.

    The printed address ends in a token, new each time and required for access.

    The page shows what `unbraid report` shows, and more. Every run has a page with live traversals, and you can put two
    runs next to each other. Metrics are computed on demand and kept in the run's folder. Results of a running study
    appear by themselves.

    Examples:

      unbraid explore study/

      unbraid explore runs/3f6c0f0a8d1e2b47 --port 9000
    """
    require("torch", "train", "unbraid explore")
    require("pandas", "table", "unbraid explore")
    from unbraid.explore.server import serve
    from unbraid.explore.site import open_site
    from unbraid.storage.remote import at_hand

    if folder.is_file():
        raise ValueError(f"{folder}: not the folder of a study or a run; unbraid report {folder} makes a page of it")
    with at_hand(folder) as here:
        site = open_site(here, trusted(trust_code, trust_data))
        with serve(host, port, site.get, site.post, allow_remote=allow_remote, token=token_urlsafe(16)) as server:
            try:
                say(f"{folder} at {server.address} (Ctrl-C ends it)")
                server.serve_forever()
            except KeyboardInterrupt:
                say(f"\nstopped serving {folder}")
