"""``redraft serve``: its options; `redraft.serve.run` does the work."""

from __future__ import annotations

from pathlib import Path

import click

from redraft import interrupt
from redraft.cli import options as common
from redraft.errors import MissingExtra, OptionError

EXAMPLES = """\b
Examples:
  redraft serve
  redraft serve --config serve.toml --port 9000
  redraft serve --keys keys.txt --new-key stage
  redraft serve --host 0.0.0.0 --keys keys.txt
"""


@click.command(epilog=EXAMPLES)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings as TOML; docs/serving.md.")
@click.option("--host", metavar="ADDRESS", help="Where to listen; others than this machine need --keys.  [127.0.0.1]")
@click.option("--port", type=common.Whole(0, 65535), help="Port; 0 takes a free one.  [8765]")
@click.option("--model", "-m", metavar="MODEL", help=f"{common.MODELS} {common.HF_MODELS}  [demo]")
@click.option("--draft-model", metavar="MODEL", help="For methods that draft with a small model.")
@click.option("--method", "methods", multiple=True, metavar="NAME", help="Allowed method; the first is usual. Repeat.")
@click.option("--slots", type=common.Whole(1, 255), help="Translations whose cache is kept.  [32]")
@click.option("--threads", type=common.Whole(0, 1024), help="CPU threads of an engine; 0 shares all cores.  [0]")
@click.option("--keys", type=click.Path(path_type=Path), metavar="FILE", help="Hashed API keys, one a line.")
@click.option("--new-key", metavar="NAME", help="Add a key to --keys, print it, and stop.")
@click.option("--transcripts", type=click.Path(path_type=Path), metavar="FOLDER", help="Keep transcripts there.")
def serve(
    config: Path | None,
    host: str | None,
    port: int | None,
    model: str | None,
    draft_model: str | None,
    methods: tuple[str, ...],
    slots: int | None,
    threads: int | None,
    keys: Path | None,
    new_key: str | None,
    transcripts: Path | None,
) -> None:
    """Serve live translation to many sessions at once.

    Every setting can stand in the file of --config or in the environment, as REDRAFT_SERVE_PORT and so on; what is
    given here counts before both. Ends after SIGTERM or Ctrl+C as soon as what was begun has been delivered.
    """
    try:
        with interrupt.ends_process():  # imports that take a moment
            from rich.console import Console

            from redraft.serve import logs, run, security, settings
            from redraft.serve.engine import Stopped
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"serving needs {error.name}, which is not installed: pip install 'redraft[serve]'"
        ) from error
    if new_key is not None:
        if keys is None:
            raise OptionError("--new-key needs --keys, the file to which the key is added")
        click.echo(security.new_key(keys, new_key))
        return
    chosen = settings.load(
        config,
        host=host,
        port=port,
        model=model,
        draft_model=draft_model,
        methods=methods or None,
        slots=slots,
        threads=threads,
        keys=keys,
        transcripts=transcripts,
    )
    console = Console(stderr=True, soft_wrap=True)
    logs.set_up(details=chosen.log_text, plain=console.is_terminal)
    try:
        run.serve(chosen, console if console.is_terminal else None)
    except Stopped as error:  # unlike what is wrong with the settings, that may be gone after another start
        click.echo(f"redraft: {error}", err=True)
        raise click.exceptions.Exit(1) from None
