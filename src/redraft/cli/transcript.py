"""``redraft transcript``: a transcript that a server has kept, in another form."""

from __future__ import annotations

import json
import sys
from dataclasses import fields, replace
from pathlib import Path

import click

from redraft.captions.events import Caption, is_text
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


def _captions(text: str) -> list[Caption]:
    """Return the captions in a file, without a last line that is incomplete.

    Raises:
        InputError: a line is not a final caption.
    """
    captions, lines = list[Caption](), text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
            known = {each.name: found[each.name] for each in fields(Caption) if each.name in found}
            texts = [known.get(name, "") for name in ("utterance", "language", "text", "source", "speaker")]
            times = [known.get(name, 0.0) for name in ("time", "start")]
            if found["type"] != "final" or not all(map(is_text, texts)) or not {*map(type, times)} <= {int, float}:
                raise ValueError
            captions.append(Caption(**{**known, "final": True}))
        except (ValueError, TypeError, KeyError, AttributeError):
            if number < len(lines) or not captions:
                raise InputError("not a final caption, as `redraft serve --transcripts` writes them", number) from None
    return captions
