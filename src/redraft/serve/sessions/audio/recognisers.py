"""The operator's recogniser: its checks, its processes, and admission of a limited number of sessions at a time.

Every stream of audio has a recogniser in a separate process.  Some recognisers hold the interpreter lock, which would
block the event loop and the captions of all sessions; streams of others influence each other within a process
(`redraft.speech.moonshine`); and a crash of one must not crash the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from redraft import deadlines
from redraft.captions.languages import parse_language
from redraft.errors import OptionError, RedraftError
from redraft.protocol.codes import Refused
from redraft.serve.metrics import Metrics
from redraft.serve.settings import ServeSettings
from redraft.speech.endpoint import PAUSE
from redraft.speech.process import IsolatedRecogniser, RecogniserProcess
from redraft.speech.registry import check_recogniser
from redraft.speech.worker import command


class Recognisers:
    """Opens recognisers for sessions."""

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        #: Returns the command of a recogniser's process for a language.
        self.command: Callable[[str], Sequence[str]] = lambda language: command_of(settings, language)
        self._tasks: set[asyncio.Task[None]] = set()
        metrics.gauge("redraft_listening", "Sessions whose speech is being recognised", lambda: self.taken)

    @property
    def offered(self) -> bool:
        """Whether the operator has configured a recogniser."""
        return self.settings.recogniser is not None

    @property
    def taken(self) -> int:
        """Number of places in use: one for each task of `run`."""
        return sum(not task.done() for task in self._tasks)

    def open(self, language: str) -> RecogniserProcess:
        """Return a recogniser, to be started in a task of `run`."""
        return RecogniserProcess(
            self.command(language),
            opens=deadlines.RECOGNISER_OPENS,
            stalled=deadlines.STALLED_AT_SERVER,
            details=self.settings.log_text,
        )

    def public(self, sentence: str) -> str:
        """Return a recogniser's message for clients, without the operator's paths and addresses."""
        name, _, place = (self.settings.recogniser or "").partition(":")
        for private, word in ((place.rstrip("/"), name), (self.settings.punctuation or "", "punctuation")):
            if private:
                sentence = sentence.replace(f"{private}/ ", f"{word} ").replace(private, word)
        return sentence

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that takes a place until it ends.

        Raises:
            Refused: all places are taken.
        """
        if self.taken >= self.settings.listeners:
            work.close()
            raise Refused(
                "capacity",
                f"all {self.settings.listeners} places for speech recognition on this server are taken: try again "
                "later, or send text",
            )
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Stop all recognisers, and wait until their processes have ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def command_of(settings: ServeSettings, language: str) -> list[str]:
    """Return the command of a recogniser's process."""
    return command(settings.recogniser or "", language, PAUSE, settings.punctuation)


def check_recognition(settings: ServeSettings) -> None:
    """Raise `OptionError` if no recogniser has this name, or a punctuation model is set without one."""
    if settings.recogniser is not None:
        check_recogniser(settings.recogniser)
    elif settings.punctuation is not None:
        raise OptionError("punctuation is for recognised text, so it needs the setting recogniser")


def try_recogniser(settings: ServeSettings, languages: Sequence[str]) -> None:
    """Open the recogniser once, so that errors appear at start-up.

    Args:
        languages: source languages of the model, if it declares them.

    Raises:
        OptionError: the recogniser cannot be used.
    """
    if settings.recogniser is None:
        return
    language = parse_language(languages[0] if languages else "en").code
    try:
        IsolatedRecogniser(command_of(settings, language), opens=deadlines.RECOGNISER_OPENS).close()
    except RedraftError as error:
        # If the model declares no languages, the recogniser may still support another one.
        if languages or not isinstance(error, OptionError):
            raise OptionError(f"recogniser {settings.recogniser!r} cannot be used: {error}") from None
