"""``redraft serve``: options; `redraft.serve.run` does the work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from redraft import interrupt
from redraft.cli.shared import options as common
from redraft.cli.shared.suggestion import introduce, suggest
from redraft.errors import MissingExtra, OptionError, install

EXAMPLES = """\b
Examples:
  redraft serve
  redraft serve --config serve.toml --port 9000
  redraft serve --keys keys.txt --new-key stage
  redraft serve --host 0.0.0.0 --keys keys.txt
  redraft serve --viewers-only --fanout redis://127.0.0.1:6379/0
  redraft serve --compat deepl,libretranslate,openai
  redraft serve --recogniser
"""


@click.command(
    cls=common.Grouped,
    groups={
        "Network and access": ("config", "host", "port", "keys", "new_key", "compat", "transcripts"),
        "Model": ("model", "draft_model", "methods", "slots", "threads"),
        "Captions": ("final",),
        "Speech": ("recogniser", "sentences", "punctuation"),
        "Several servers": ("fanout", "viewers_only"),
    },
    epilog=EXAMPLES,
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file with settings; docs/serving.md lists them.",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    help="Address to listen on; needs --keys unless it is a loopback address.  [default: 127.0.0.1]",
)
@click.option("--port", type=common.Whole(0, 65535), help="Port; 0 picks a free one.  [default: 8765]")
@click.option("--model", "-m", metavar="MODEL", help=f"{common.MODELS} {common.HF_MODELS}  {common.DEFAULT_MODEL}")
@click.option("--draft-model", metavar="MODEL", help="Small model for methods that need one.")
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    help="Method that clients may choose, the default first; repeatable.  [default: redraft, ssbd, ar]",
)
@click.option(
    "--slots",
    type=common.Whole(1, 255),
    help="Target languages, over all sessions, that keep a model cache.  [default: 32]",
)
@click.option(
    "--threads", type=common.Whole(0, 1024), help="CPU threads per engine; 0 divides all cores.  [default: 0]"
)
@click.option(
    "--keys", type=click.Path(path_type=Path), metavar="FILE", help="File of hashed API keys; --new-key adds one."
)
@click.option("--new-key", metavar="NAME", help="Create a key with this name, add it to --keys, print it and exit.")
@click.option(
    "--transcripts", type=click.Path(path_type=Path), metavar="FOLDER", help="Write transcripts to this folder."
)
@click.option(
    "--compat",
    metavar="NAMES",
    help="APIs to offer, comma-separated: alignatt-mt, deepl, libretranslate, openai.  [default: none]",
)
@click.option(
    "--recogniser",
    is_flag=False,
    flag_value="auto",
    metavar="[NAME[:MODEL|:URL]]",
    help="Recognise speech from pages and clients, as `redraft listen` does.  [default: none]",
)
@click.option("--final", metavar=common.FINALS, help=f"{common.FINAL}  [default: biased]")
@common.punctuation
@click.option("--sentences/--no-sentences", default=None, help=f"{common.SENTENCES}  [default: on]")
@click.option("--fanout", metavar="URL", help="Redis: servers that share one serve the viewers of all their sessions.")
@click.option("--viewers-only", is_flag=True, help="Serve only viewers of other servers' sessions; loads no model.")
@common.needs("serve")
def serve(
    config: Path | None,
    keys: Path | None,
    new_key: str | None,
    methods: tuple[str, ...],
    compat: str | None,
    viewers_only: bool,
    **given: Any,
) -> None:
    """Serve live translation to many sessions, with pages for speakers, viewers and overlays.

    Settings also come from the --config file or the environment, such as REDRAFT_SERVE_PORT. Options take precedence
    over the environment, and the environment over the file. On Ctrl-C or SIGTERM, the server finishes captions in
    progress, then exits.
    """
    try:
        with interrupt.ends_process():  # slow imports
            from rich.console import Console

            from redraft.serve import access, process, run, settings
            from redraft.serve.engine.engine import Stopped
    except ModuleNotFoundError as error:
        raise MissingExtra(f"serving needs {error.name}, which is not installed: {install('serve')}") from error
    if new_key is not None:
        if keys is None:
            raise OptionError("--new-key needs --keys, the file to which the key is added")
        click.echo(access.new_key(keys, new_key))
        return
    chosen = settings.load(
        config,
        keys=keys,
        methods=methods or None,
        compat=None if compat is None else tuple(name.strip() for name in compat.split(",") if name.strip()),
        viewers_only=viewers_only or None,
        **given,
    )
    if given["model"] is None and not viewers_only:
        introduce(chosen.model)
    console = Console(stderr=True, soft_wrap=True)
    process.set_up_logs(details=chosen.log_text, plain=console.is_terminal)
    try:
        run.serve(chosen, console if console.is_terminal else None)
    except Stopped as error:  # unlike invalid settings, this may go away after a restart
        click.echo(f"redraft: {error}", err=True)
        raise click.exceptions.Exit(1) from None
    if chosen.transcripts is None:
        suggest("keep what is said: redraft serve --transcripts FOLDER")
