"""Shared by the commands that make captions: translation options, and the steps from updates to output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from redraft.captions.formats.read import Item
from redraft.captions.formats.write import STREAMS
from redraft.captions.metadata import TEMPLATE_NAMES
from redraft.cli.shared import options as common
from redraft.cli.shared.ending import Ending
from redraft.cli.shared.notice import introduce, notice
from redraft.errors import OptionError

if TYPE_CHECKING:
    from redraft.async_translator import AsyncTranslator
    from redraft.captions.events import Event
    from redraft.captions.formats.push import CaptionService
    from redraft.cli.shared.remote import CommandClient
    from redraft.speech.delay import Watch

template = click.option(
    "--template",
    type=click.Choice(TEMPLATE_NAMES),
    metavar="NAME",
    help=f"Prompt template: {', '.join(TEMPLATE_NAMES)}.  [default: the model's own]",
)
prompt = click.option(
    "--prompt",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Prompt of your own, with {source}; docs/models.md lists the other fields.",
)

#: Opens the input: raises on entry if it is invalid, then yields updates lazily until the end is asked for.
Opened = Callable[[Ending], AbstractContextManager[Iterable[Item]]]

#: Options of model and engine, which a server sets itself, and what is said of others.
_OF_THE_SERVER = ("model", "draft_model", "template", "prompt", "engine")
_DECIDED = "translating here, so leave it out with --server, which decides this itself"
_FOR_SERVERS = "a session on a server, so leave it out or add --server"
#: What helps if captions of a server are late, and it does not report what its model can do.
_REMOTE = "look at the server, and at the network between"


languages = common.all_of(
    [
        common.heading("Languages"),
        common.to,
        click.option(
            "--from",
            "sources",
            multiple=True,
            default=("en",),
            metavar="LANGUAGE",
            help="Language of the source; repeatable if several are spoken, or auto for any.",
        ),
        click.option(
            "--term",
            multiple=True,
            metavar="[LANGUAGE:]TERM=TRANSLATION",
            help="Glossary entry, such as hull=Rumpf, or de:hull=Rumpf with several languages; repeatable.",
        ),
    ]
)

translation = common.all_of(
    [
        common.heading("Captions"),
        click.option(
            "--output",
            type=common.Output(STREAMS),
            help="live: redrawn in place. lines: tab-separated. jsonl: all fields. srt, vtt: subtitles, with "
            "srt:broadcast or srt:cart for other readers.  [default: live on a terminal, else lines]",
        ),
        click.option(
            "--reading",
            type=common.Whole(16, 80),
            metavar="CELLS",
            help="Show complete lines of this width, such as 37, which never change.",
        ),
        click.option(
            "--push",
            multiple=True,
            metavar="TARGET",
            help="Also send final captions to zoom:URL or youtube:URL; de=zoom:URL picks a language. Repeatable.",
        ),
        common.heading("Model"),
        common.model,
        common.draft_model,
        common.method,
        common.option,
        template,
        prompt,
        common.engine,
        common.heading("Server"),
        click.option(
            "--server", metavar="URL", help="Translate on this `redraft serve`, such as http://127.0.0.1:8765."
        ),
        click.option("--room", metavar="NAME", help="Room of --server: links stay the same from talk to talk."),
        click.option("--take-over", is_flag=True, help="Replace the session that is running in --room."),
        click.option(
            "--key",
            envvar="REDRAFT_KEY",
            metavar="KEY",
            help="API key for --server; safer in the environment as REDRAFT_KEY.",
        ),
    ]
)


def caption(opened: Opened, watch: Watch | None = None, **chosen: Any) -> None:
    """Translate updates and write captions, locally or on a server; exit with status 1 if anything failed.

    The first signal ends the input, and what has been recognised is finished; a second one ends the program, as does a
    closed output.  Text without a caption is then named on standard error.  The exit status after a signal is 128 plus
    its number, unless the input never ends otherwise.

    Args:
        opened: opens the input.
        watch: warns if captions are far behind speech; None for an input without audio.
        chosen: values of `languages` and `translation` by name.

    Raises:
        RedraftError: an option, the input, the model or the server was rejected; nothing was started.
    """
    from redraft.captions.languages import parse_languages, same_of
    from redraft.captions.prompt import prompt_file
    from redraft.captions.style import Style
    from redraft.cli.shared import stream
    from redraft.cli.shared.driver import Driver, accounted
    from redraft.speech.delay import Watch

    server = chosen["server"]
    common.refuse_idle(
        dict.fromkeys(("key", "room", "take_over"), "" if server else _FOR_SERVERS)
        | dict.fromkeys(_OF_THE_SERVER, _DECIDED if server else "")
    )
    options = common.method_options(chosen["method"], chosen["option"])
    shown = parse_languages(chosen["to"])
    first, *also_spoken = chosen["sources"]
    spoken = None if also_spoken else same_of(first, shown)
    languages = [each for each in shown if each != spoken]
    if not languages:
        raise OptionError("must have a language other than the one that is spoken", "to")
    glossary = _glossary(chosen["term"], languages)
    output, profile = common.profile_of(chosen["output"] or ("live" if sys.stdout.isatty() else "lines"))
    pushed = [_pushed(each, shown) for each in chosen["push"]]
    own = chosen["prompt"] and prompt_file(chosen["prompt"])
    style = Style(first, chosen["template"], own, glossary, also_spoken)
    method = {"method": chosen["method"], "options": options}
    watch, remote = watch or Watch(notice, live=False), None
    if server is not None:
        from redraft.cli.shared.remote import CommandClient  # needs an extra

        access = {name: chosen[name] for name in ("key", "room", "take_over")}
        method = method if common.given() & {"method", "option"} else {}  # else, the server chooses
        remote = CommandClient(server, languages, style=style, **access, **method)
        remote.news = watch.news
    with ExitStack() as stack:
        ending = stack.enter_context(Ending())
        items = stack.enter_context(opened(ending))
        translator: AsyncTranslator | CommandClient
        if remote is not None:
            translator = remote
        else:
            from redraft.async_translator import AsyncTranslator
            from redraft.translator import Translator

            more = {name: chosen[name] for name in ("draft_model", "engine")}
            made = Translator.open(chosen["model"], to=languages, style=style, **method, **more)
            # Updates are skipped where they are read, so that what is behind can be measured there.
            translator = AsyncTranslator(stack.enter_context(made), ahead=0)
            if "model" not in common.given():
                introduce(chosen["model"])
        stack.enter_context(ending.by_signals())
        backlog = stack.enter_context(accounted(items, ending, languages, timed=output in ("srt", "vtt")))
        audience = remote.control if remote else None
        opening = stream.writer(
            output, shown, chosen["reading"], pushed, audience, spoken=spoken, live=ending.live, profile=profile
        )
        writer = stack.enter_context(opening)
        if remote:
            ending.when_asked(remote.hurry)
        watch.able = lambda: translator.able or (_REMOTE if remote else "")

        def seen(event: Event) -> None:
            backlog.written(event)
            watch.check(event, backlog.age if backlog.live and not (remote or ending.asked) else 0.0)

        whole = Driver(translator, writer, seen, ending, viewers=remote is not None).run(backlog)
    if ending.signal is not None and not ending.endless:
        raise click.exceptions.Exit(128 + ending.signal)
    if not (whole and writer.whole):
        raise click.exceptions.Exit(1)


def _language(named: str, languages: Sequence[str], option: str, example: str) -> str:
    """Return the language that a value of an option names, or the only one if it names none.

    Args:
        example: what stands after the language in a correct value.

    Raises:
        OptionError: it is missing, invalid or not one of them.
    """
    from redraft.captions.languages import parse_language, same_of

    language = languages[0] if len(languages) == 1 else ""
    if named:
        language = same_of(named, languages) or parse_language(named, option).standard
    if language not in languages:
        known = f"must name one of the languages {', '.join(languages)}"
        raise OptionError(f"{known}, as in {languages[0]}{example}", option)
    return language


def _pushed(target: str, languages: Sequence[str]) -> tuple[str, CaptionService]:
    """Return the language and the service of a ``--push`` option."""
    from redraft.captions.formats.push import CaptionService

    named, sign, address = target.partition("=")
    if not sign or ":" in named:
        named, address = "", target
    language = _language(named, languages, "push", f"={address}")
    return language, CaptionService(address, language)


def _glossary(entries: Sequence[str], languages: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return the terms of each language; raise `OptionError` for a ``--term`` that is incomplete or given twice."""
    found: dict[str, dict[str, str]] = {}
    for text in entries:
        left, _, translation = (part.strip() for part in text.partition("="))
        *named, term = (part.strip() for part in left.split(":", 1))
        if not all((*named, term, translation)):
            raise OptionError(f"must be TERM=TRANSLATION or LANGUAGE:TERM=TRANSLATION, not {text!r}", "term")
        language = _language("".join(named), languages, "term", f":{term}={translation}")
        if term in (terms := found.setdefault(language, {})):
            raise OptionError(f"{term!r} is given twice, so leave one out", "term")
        terms[term] = translation
    return {language: [*terms.items()] for language, terms in found.items()}
