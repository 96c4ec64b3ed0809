"""``redraft transcript``: a transcript that a server has kept, in another form."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path

import click

from redraft.captions.events import TEXT, Caption, Field, is_seconds, is_whole
from redraft.captions.formats.read import check_fields, json_object
from redraft.captions.formats.write import TRANSCRIPTS, Output, open_writer
from redraft.cli.shared import options as common
from redraft.errors import InputError, OptionError

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
    from redraft.captions.languages import same_of  # a slow import

    renamed: dict[str | None, str] = {}
    for each in names:
        speaker, _, name = (part.strip() for part in each.partition("="))
        if not speaker or not name:
            raise OptionError(f"must be a speaker and a name, such as Speaker 1=Anna, not {each!r}", "name")
        renamed[speaker] = name
    captions = _captions(file.read_text(encoding="utf-8", errors="replace"))
    known = tuple(dict.fromkeys(each.language for each in captions))
    # What was spoken has no source.
    languages = tuple(dict.fromkeys(each.language for each in captions if each.source)) or known
    if wanted:
        languages = tuple(dict.fromkeys(same_of(each, known) or "" for each in wanted))
    if "" in languages:
        raise OptionError(f"must be one of {', '.join(known)}, which the file has", "to")
    utterances: dict[str, dict[str, Caption]] = {}
    for caption in captions:
        named = replace(caption, speaker=renamed.get(caption.speaker, caption.speaker))
        utterances.setdefault(caption.utterance, {}).setdefault(caption.language, named)
    form, profile = common.profile_of(form)
    writer = open_writer(Output(form, sys.stdout, sys.stderr, languages, profile))
    for found in utterances.values():
        if chosen := [found[each] for each in languages if each in found]:
            writer.write_together(chosen)
    writer.close()


#: Fields of a final caption that are read, and those that it always has.
_FINAL: dict[str, Field] = {
    "type": (lambda value: value == "final", '"final"'),
    "seq": (is_whole, "a whole number"),
    **dict.fromkeys(("utterance", "language", "text", "source", "speaker"), TEXT),
    **dict.fromkeys(("time", "start"), (is_seconds, "seconds")),
}
_NEEDED = ("type", "utterance", "seq", "language", "text")


def _captions(text: str) -> list[Caption]:
    """Return the captions in a file, without a last line that is incomplete; raise `InputError` for other lines."""
    captions, lines = list[Caption](), text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json_object(line, _NEEDED)
            check_fields(found, _FINAL, _NEEDED, "a transcript")
            known = {each.name: found[each.name] for each in fields(Caption) if each.name in found}
            captions.append(Caption(**{**known, "final": True}))
        except InputError:
            if number < len(lines) or not captions:
                raise InputError("not a final caption, as `redraft serve --transcripts` writes them", number) from None
    return captions
