"""The operator's recogniser: its checks, and admission of a limited number of sessions at a time."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from redraft.captions.languages import parse_language
from redraft.errors import OptionError
from redraft.serve.audio.process import RecogniserProcess
from redraft.serve.metrics import Metrics
from redraft.serve.refusals import Refused
from redraft.serve.settings import ServeSettings
from redraft.speech.registry import check_recogniser
from redraft.speech.worker import arguments

#: Seconds within which a recogniser must start.
_TRIAL_SECONDS = 120


class Recognisers:
    """Opens recognisers for sessions.

    Args:
        settings: the recogniser, and its maximum number of sessions.
        metrics: counts the recognisers in use.
        refused: makes a refusal from a code and a sentence.
    """

    def __init__(self, settings: ServeSettings, metrics: Metrics, refused: Callable[[str, str], Refused]) -> None:
        self.settings, self.metrics, self._refused = settings, metrics, refused
        #: Returns the command of a recogniser's process for a language.
        self.command: Callable[[str], Sequence[str]] = lambda language: command_of(settings, language)
        self._tasks: set[asyncio.Task[None]] = set()
        metrics.gauge("redraft_listening", "Sessions whose speech is recognised", lambda: self.taken)

    @property
    def offered(self) -> bool:
        """Whether the operator has configured a recogniser."""
        return self.settings.recogniser is not None

    @property
    def taken(self) -> int:
        """Number of places in use: one for each task of `run`."""
        return len(self._tasks)

    def open(self, language: str) -> RecogniserProcess:
        """Return a recogniser, to be used in a task of `run`.

        Raises:
            Refused: all places are taken.
        """
        if self.taken >= self.settings.listeners:
            raise self._refused(
                "capacity",
                f"all {self.settings.listeners} places for speech recognition on this server are taken: try again "
                "later, or send text",
            )
        return RecogniserProcess(self.command(language), details=self.settings.log_text)

    def public(self, sentence: str) -> str:
        """Return a recogniser's message for clients, without the operator's paths and addresses."""
        name, _, place = (self.settings.recogniser or "").partition(":")
        for private, word in ((place.rstrip("/"), name), (self.settings.punctuation or "", "punctuation")):
            if private:
                sentence = sentence.replace(f"{private}/ ", f"{word} ").replace(private, word)
        return sentence

    def run(self, work: Coroutine[Any, Any, None], over: Callable[[], object]) -> asyncio.Task[None]:
        """Start a task that takes a place, and for which `close` waits.

        Args:
            work: uses the recogniser.
            over: called once the task has ended for any reason, even before it began, and its place is free.
        """
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: over())
        return task

    async def close(self) -> None:
        """Stop all recognisers, and wait until their processes have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def command_of(settings: ServeSettings, language: str) -> list[str]:
    """Return the command of a recogniser's process."""
    return arguments(settings.recogniser or "", language, settings.pause, settings.punctuation)


def check_recognition(settings: ServeSettings) -> None:
    """Check the recogniser in the settings.

    Raises:
        OptionError: no recogniser has this name, or a punctuation model is set without a recogniser.
    """
    if settings.recogniser is not None:
        check_recogniser(settings.recogniser)
    elif settings.punctuation is not None:
        raise OptionError("punctuation needs a recogniser, whose text it is for")


def try_recogniser(settings: ServeSettings, languages: Sequence[str]) -> None:
    """Open the recogniser once, so that errors appear at start-up.

    Args:
        settings: the server's settings.
        languages: source languages of the model, if it declares them.

    Raises:
        OptionError: the recogniser cannot be used.
    """
    if settings.recogniser is None:
        return
    language = parse_language(languages[0] if languages else "en").code
    command = command_of(settings, language)
    try:
        tried = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_SECONDS)
        said = json.loads(tried.stdout.partition(b"\n")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        sentence = f"recogniser {settings.recogniser!r} cannot be opened: its process does not answer; try it with"
        raise OptionError(f"{sentence} redraft listen --recogniser {settings.recogniser}") from None
    # If the model declares no languages, the recogniser may still support another one.
    if said["type"] == "error" and (languages or said.get("kind") != OptionError.__name__):
        raise OptionError(f"recogniser {settings.recogniser!r} cannot be used: {said['message']}")
