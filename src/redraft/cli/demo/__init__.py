"""``redraft demo``: options; `redraft.cli.demo.stage` plays the talk."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from typing import Any

import click

from redraft import interrupt
from redraft.cli.shared import options as common
from redraft.cli.shared.notice import introduce, notice, suggest

EXAMPLES = """\b
Examples:
  redraft demo
  redraft demo --to de --speed 1
  redraft demo --live --to de
  redraft demo --sentences 3 --json
"""

NO_SOUND = "the talk could not be heard: there is no sound device, or the extra `listen` is not installed"


@click.command(epilog=EXAMPLES)
@click.option(
    "--to", "-t", multiple=True, default=("de", "zh", "ja"), metavar="LANGUAGE", help="Target language; repeatable."
)
@click.option(
    "--method",
    multiple=True,
    default=("ar", "redraft"),
    metavar="NAME",
    help="Method to compare, from `redraft methods`; repeatable.",
)
@click.option(
    "--speed", type=common.Real(0), default=4.0, help="Playback speed; 1 is with sound, 0 is as fast as possible."
)
@click.option("--live", is_flag=True, help="Recognise the recording now, with sound.")
@click.option("--sentences", type=common.Whole(0), default=0, help="Stop after this many; 0 plays the whole talk.")
@common.demo_model
@common.draft_model
@common.engine
@common.as_json
def demo(
    to: tuple[str, ...],
    method: tuple[str, ...],
    speed: float,
    live: bool,
    sentences: int,
    model: str,
    draft_model: str | None,
    as_json: bool,
    engine: Mapping[str, float | str],
) -> None:
    """Watch a talk being translated live, from scratch (ar) and by the default method side by side.

    The talk is a recording of two voices, with the transcript that the recogniser Moonshine wrote for it. With --live,
    Moonshine recognises the recording while you watch (extra `listen`). At the end, or on Ctrl-C, a table compares the
    methods; docs/metrics.md explains it.
    """
    from rich.console import Console
    from rich.progress import track

    from redraft.backends.load import gguf_file, open_models
    from redraft.captions.languages import parse_languages
    from redraft.captions.talk import RECORDING, load_talk
    from redraft.cli.demo import stage
    from redraft.decoding.methods import get_method
    from redraft.decoding.types import DRAFT_MODEL, TARGET
    from redraft.errors import OptionError
    from redraft.signature import file_hash, print_json, signature, text_hash
    from redraft.speech.endpoint import PAUSE
    from redraft.speech.microphone import playing
    from redraft.speech.process import isolated
    from redraft.speech.registry import AUTO, resolve

    if live and "speed" in common.given():
        raise OptionError("--live plays at real speed, so leave --speed out")
    chosen = [get_method(name) for name in dict.fromkeys(method)]
    languages = parse_languages(to)
    talk = list(stage.first(load_talk(), sentences))
    listening = resolve(AUTO, "en") if live else ""
    recogniser = isolated(listening, "en", PAUSE, None) if live else None
    console, progress = Console(), Console(stderr=True)
    on_screen = console.is_terminal and not as_json
    with ExitStack() as stack:
        file = gguf_file(model)
        given, slots = {"context_length": 512, **engine}, len(languages) * len(chosen)
        (models,) = open_models(chosen, model, draft_model, given, slots, stack)
        backend, small = models[TARGET], models.get(DRAFT_MODEL)
        players = [stage.Player(backend, each, language, small) for language in languages for each in chosen]
        interrupt.raises()  # what was counted is shown, and the screen restored
        if recogniser:
            updates = stage.first(stage.recognised(recogniser), sentences)
        else:  # only on a screen, the talk takes its time
            updates = stage.timed(talk, speed if on_screen else 0)
        audible = live or (on_screen and speed == 1)
        with playing(str(RECORDING)) if audible else nullcontext(True) as sounds:
            if on_screen:
                with stage.Stage(players, console, talk[-1].time or 0.0, listening) as shown:
                    stopped = stage.play(players, updates, shown.show)
            else:
                tracked = track(updates, "translating", len(talk), console=progress, disable=not progress.is_terminal)
                stopped = stage.play(players, tracked, bool)
    if not sounds:
        notice(NO_SOUND)
    if finished := len(players[0].finished):
        rows = stage.rows(players)
        if as_json:
            text = "\n".join(f"{each.utterance} {each.seq} {each.text}" for each in talk)
            data = file_hash(RECORDING) if live else text_hash(text)
            settings: dict[str, Any] = {"recogniser": listening} if live else {}
            print_json(rows, signature(file, "talk", data, **settings), sys.stdout)
        else:
            console.print()
            stage.print_table(rows, console)
    if not as_json:
        introduce(model, "this talk was written for")
        suggest("translate what you say: redraft listen --to de")
    if isinstance(stopped, KeyboardInterrupt):
        notice(f"stopped after {finished} sentences{', which the table counts' * bool(finished)}")
        raise click.exceptions.Exit(130)
    if stopped:
        notice(stopped)
        raise click.exceptions.Exit(1)
