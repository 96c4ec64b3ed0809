"""``redraft transcript``: a transcript that a server has kept, in another form."""

from __future__ import annotations

from pathlib import Path

import click

from redraft.captions.formats.outputs import TRANSCRIPTS
from redraft.cli.shared import options as common

EXAMPLES = """\b
Examples:
  redraft transcript 2026-11-27-hall-1-de-ja-5c0f.jsonl
  redraft transcript 2026-11-27-hall-1-de-ja-5c0f.jsonl --output srt --to de
  redraft transcript 2026-11-27-hall-1-de-ja-5c0f.jsonl \\
    --output srt:broadcast,start=10:00:00
"""


@click.command(epilog=EXAMPLES)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output",
    "form",
    type=common.Output(TRANSCRIPTS),
    default="txt",
    show_default=True,
    help="Form of the transcript; srt:broadcast and srt:cart are subtitles for other readers.",
)
@click.option("--to", "wanted", multiple=True, metavar="LANGUAGE", help="Only this language; repeatable.")
@click.option(
    "--name", "names", multiple=True, metavar="SPEAKER=NAME", help="Name a speaker, as in Speaker 1=Anna; repeatable."
)
def transcript(file: Path, form: str, wanted: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Convert a FILE from the folder of transcripts of a server (`redraft serve --transcripts`)."""
    from redraft.captions.languages import same_of
    from redraft.errors import OptionError, from_extra

    with from_extra("serve", "transcripts need"):
        from redraft.serve.sessions.transcript import from_lines
    found = from_lines(file.read_text(encoding="utf-8", errors="replace"))
    for each in names:
        speaker, _, name = (part.strip() for part in each.partition("="))
        if not speaker or not name:
            raise OptionError(f"must be a speaker and a name, such as Speaker 1=Anna, not {each!r}", "name")
        found.names[speaker] = name, 1
    languages = [same_of(each, found.languages) for each in wanted] or list(found.targets)
    if None in languages:
        raise OptionError(f"must be one of {', '.join(found.languages)}, which the file has", "to")
    known = [each for each in languages if each is not None]
    form, profile = common.profile_of(form)
    click.echo(found.text(form, known, profile), nl=False)
