"""``redraft listen``: translate speech."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from redraft.captions.formats.read import Item
from redraft.cli.shared import captioning
from redraft.cli.shared import options as common
from redraft.cli.shared.ending import Ending
from redraft.cli.shared.notice import notice, suggest
from redraft.errors import InputError

if TYPE_CHECKING:
    from redraft.captions.events import Failure
    from redraft.speech.audio import Samples
    from redraft.speech.recogniser import Recogniser

EXAMPLES = """\b
Examples:
  redraft listen --to de
  redraft listen --to de --device system
  redraft listen talk.mp3 --to de --output srt > talk.srt
  redraft listen talk.wav --speed 1 --to de --to ja
  ffmpeg -i talk.mp4 -f s16le -ac 1 -ar 16000 - | redraft listen - --to de
  redraft listen --to de --recogniser vosk:ws://127.0.0.1:2700
  redraft listen --to de --server http://127.0.0.1:8765 --room hall-1
"""

_RATES = common.Whole(4000, 384_000)


def _list_devices() -> None:
    from redraft.speech.microphone import NO_SYSTEM, SYSTEM, devices, system_device

    if not (names := devices()):
        raise InputError("no microphone was found")
    for number, name in names.items():
        click.echo(f"{number}\t{name}")
    system = system_device()
    click.echo(f"{SYSTEM}\t{NO_SYSTEM if system is None else f'what this computer plays, from {names[system]!r}'}")


def _list_recognisers() -> None:
    from redraft.speech import dialect
    from redraft.speech.registry import all_recognisers

    for name, module in all_recognisers().items():
        click.echo(f"{name}\t{module.SUMMARY}")
        for model, about in module.MODELS.items():
            click.echo(f"{name}:{model}\t{about}")
    for name, module in all_recognisers(dialect.ENTRY_POINT_GROUP).items():
        click.echo(f"{name}:ws://...\t{module.SUMMARY}")


def _listing(name: str, print_list: Callable[[], None], help: str) -> Callable[[Any], Any]:
    def callback(context: click.Context, _: click.Parameter, asked: bool) -> None:
        if asked and not context.resilient_parsing:
            print_list()
            context.exit()

    return click.option(name, is_flag=True, is_eager=True, expose_value=False, callback=callback, help=help)


@click.command(cls=common.Grouped, epilog=EXAMPLES)
@click.argument("file", required=False, metavar="[FILE|-]")
@captioning.languages
@common.heading("Audio")
@click.option(
    "--speed",
    type=common.Real(0, min_open=True),
    help="Playback speed of FILE; 1 is live.  [default: as fast as possible]",
)
@click.option(
    "--device",
    metavar="DEVICE",
    help="Microphone: number or part of the name. system: what this computer plays, such as a video call, from a "
    "PulseAudio or PipeWire monitor, WASAPI loopback, Stereo Mix, BlackHole or VB-Cable.  [default: the system's "
    "microphone]",
)
@click.option("--rate", type=_RATES, default=16_000, help="With -: sample rate of the raw audio.")
@click.option("--channels", type=common.Whole(1, 64), default=1, help="With -: channels of the raw audio.")
@_listing("--list-devices", _list_devices, "List the microphones, and what records the computer's sound, and exit.")
@common.heading("Recogniser")
@click.option(
    "--recogniser",
    default="auto",
    metavar="NAME[:MODEL|:URL]",
    help="Recogniser, or a server such as vosk:ws://127.0.0.1:2700. auto chooses one for the language of --from.",
)
@click.option("--pause", type=common.Real(0.1, 5), default=0.5, help="Seconds of silence that end an utterance.")
@common.punctuation
@common.sentences(True)
@_listing("--list-recognisers", _list_recognisers, "List the recognisers with their models and exit.")
@captioning.translation
@common.needs("listen")
def listen(
    file: str | None,
    sources: Sequence[str],
    recogniser: str,
    pause: float,
    punctuation: str | None,
    sentences: bool,
    speed: float | None,
    device: str | None,
    rate: int,
    channels: int,
    **chosen: Any,
) -> None:
    """Translate speech while it is spoken: from the microphone, what the computer plays, a recording, or a pipe.

    Without FILE, this records the microphone until Ctrl-C, or with --device system what the computer plays. FILE can be
    WAV, FLAC, MP3 or Ogg. With -, it reads raw 16-bit little-endian samples from standard input. Ctrl-C finishes what
    has been recognised; a second one ends at once, and names the sentences that have no caption. With --server, the
    address of the viewers' page goes to standard error.

    Captions go to standard output, errors to standard error. The exit status is 1 if something could not be recognised
    or translated, and 2 if nothing was started. docs/listen.md explains the recognisers.
    """
    from redraft.captions.style import Style
    from redraft.speech.delay import Watch
    from redraft.speech.microphone import Microphone
    from redraft.speech.registry import AUTO, punctuated, resolve

    raw = "" if file == "-" else "raw audio from standard input, so leave it out unless the file is -"
    common.refuse_idle(
        {
            "device": "the microphone, so leave it out with a file" if file is not None else "",
            "speed": "a file, so leave it out with the microphone" if file is None else "",
            "rate": raw,
            "channels": raw,
        }
    )
    spoken = ",".join(Style(sources[0], also_spoken=sources[1:]).sources) or AUTO
    recogniser = resolve(recogniser, spoken)

    live = file in (None, "-") or speed is not None
    watch = Watch(notice, live=live, speed=speed or 1.0)

    @contextmanager
    def opened(ending: Ending) -> Iterator[Iterator[Item]]:
        from redraft.cli.shared import stream
        from redraft.speech import process
        from redraft.speech.audio import at_speed, file_blocks, pcm_blocks
        from redraft.speech.recogniser import transcribe
        from redraft.speech.sentences import SentenceCutter

        ending.live = live
        blocks: Iterator[Samples | Failure]
        if file is None:
            microphone = Microphone(device)
            ending.endless = True
            ending.when_asked(microphone.stop)
            origin = f"{microphone.name!r}; press Ctrl-C to stop"
            blocks = watch.blocks(microphone.blocks(), lambda: microphone.dropped)
        else:
            origin = "standard input" if file == "-" else repr(file)
            blocks = pcm_blocks(stream.standard_input(ending), rate, channels) if file == "-" else file_blocks(file)
            blocks = blocks if speed is None else at_speed(blocks, speed, sleep=ending.sleep)
            blocks = watch.blocks(ending.until(blocks))
        announced = _announced(blocks, f"recogniser {recogniser}, audio from {origin}")
        made: Recogniser
        if "://" in recogniser:  # needs no process of its own
            from redraft.speech.servers import ServerRecogniser

            watch.remedy = "look at its server, and at the network between"
            server = ServerRecogniser(recogniser, news=watch.news)
            ending.when_asked(server.hurried.set)
            made = punctuated(server, punctuation)
        else:
            made = process.isolated(recogniser, spoken, pause, punctuation)
        items = transcribe(announced, made, SentenceCutter(whole=not sentences))
        yield watch.recognised(items)

    # Audio that is read as fast as it is recognised can wait for its captions; live audio cannot.
    captioning.caption(opened, watch, sources=sources, **chosen)
    if chosen["server"] is None:
        suggest("let others read along: redraft serve, then redraft listen --server http://127.0.0.1:8765")


def _announced(blocks: Iterator[Samples | Failure], sentence: str) -> Iterator[Samples | Failure]:
    notice(sentence)
    yield from blocks
