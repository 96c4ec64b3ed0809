"""``redraft serve``: options, made from the server's settings; `redraft.serve.run` does the work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from redraft.cli.shared import options as common
from redraft.cli.shared.notice import introduce, notice, suggest
from redraft.errors import OptionError, from_extra

with from_extra("serve", "serving needs"):
    from redraft.serve.settings import ServeSettings, load

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

LIST = "NAME[,NAME...]"


def setting(name: str, metavar: str | None = None, *names: str, **more: Any) -> Callable[[Any], Any]:
    """Return the option of a setting, with its bounds; without a default, environment and file can set it, too."""
    field = ServeSettings.model_fields[name]
    words = field.description or ""
    if field.annotation is int:
        low, high = (getattr(bound, kind) for bound, kind in zip(field.metadata, ("ge", "le"), strict=True))
        more["type"] = common.Whole(low, high)
    return click.option(
        *(names or (f"--{name.replace('_', '-')}",)),
        name,
        metavar=metavar,
        default=None,
        help=f"{words[0].upper()}{words[1:]}.{_default(field.default, name)}",
        **more,
    )


def _default(value: object, name: str) -> str:
    """Return the end of a help text: what applies where an option is not given."""
    if name == "model":
        return f"  {common.DEFAULT_MODEL}"
    if isinstance(value, tuple):
        value = ", ".join(value) or "none"
    return "" if value is None or value is False else f"  [default: {'on' if value is True else value}]"


def _names(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return names that are given with commas between or in several options; None for none."""
    return tuple(name.strip() for text in given for name in text.split(",") if name.strip()) or None


@click.command(cls=common.Grouped, epilog=EXAMPLES)
@common.heading("Network and access")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file with settings; docs/serving.md lists them.",
)
@click.option("--new-key", metavar="NAME", help="Create a key with this name, add it to --keys, print it and exit.")
@setting("host", "ADDRESS")
@setting("port", "NUMBER")
@setting("keys", "FILE")
@setting("tls_cert", "FILE")
@setting("tls_key", "FILE")
@setting("tls", "self-signed")
@setting("compat", LIST, multiple=True, callback=_names)
@setting("transcripts", "FOLDER")
@common.heading("Model")
@setting("model", "MODEL", "--model", "-m")
@setting("draft_model", "MODEL")
@setting("methods", LIST, "--method", multiple=True, callback=_names)
@setting("slots", "NUMBER")
@common.engine
@common.heading("Speech")
@setting("recogniser", "[NAME[:MODEL|:URL]]", is_flag=False, flag_value="auto")
@setting("punctuation", "FOLDER")
@setting("sentences", None, "--sentences/--no-sentences")
@common.heading("Several servers")
@setting("fanout", "URL")
@setting("viewers_only", is_flag=True)
@common.needs("serve")
def serve(config: Path | None, new_key: str | None, keys: str | None, **given: Any) -> None:
    """Serve live translation to many sessions, with pages for speakers, viewers and overlays.

    Settings also come from the --config file or the environment, such as REDRAFT_SERVE_PORT. Options take precedence
    over the environment, and the environment over the file. On Ctrl-C or SIGTERM, the server finishes captions in
    progress, then exits.
    """
    from rich.console import Console

    from redraft.engine.engine import Stopped
    from redraft.serve import access, run

    if new_key is not None:
        if keys is None:
            raise OptionError("--new-key needs --keys, the file to which the key is added")
        click.echo(access.new_key(Path(keys), new_key))
        return
    given["engine"] = given["engine"] or None
    chosen = load(config, keys=keys, **given)
    if given["model"] is None and not chosen.viewers_only:
        introduce(chosen.model)
    console = Console(stderr=True, soft_wrap=True)
    run.set_up_logs(details=chosen.log_text, plain=console.is_terminal)
    try:
        run.serve(chosen, console if console.is_terminal else None)
    except Stopped as error:  # unlike invalid settings, this may go away after a restart
        notice(error)
        raise click.exceptions.Exit(1) from None
    if chosen.transcripts is None:
        suggest("keep what is said: redraft serve --transcripts FOLDER")
