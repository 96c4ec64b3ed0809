"""Whose speech is recognised: the recogniser that the operator wants, for a bounded number of sessions at a time."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from redraft.captions.languages import parse_language
from redraft.errors import OptionError
from redraft.serve.metrics import Metrics
from redraft.serve.recognition import Recognition
from redraft.serve.refusals import Refused
from redraft.serve.settings import ServeSettings
from redraft.speech.registry import check_recogniser
from redraft.speech.worker import arguments

#: Seconds that a recogniser has to say that it can be used.
_TRIAL_SECONDS = 120


class Ears:
    """Opens recognisers.

    Args:
        settings: which one, and for how many sessions at a time.
        metrics: where is counted.
        refused: makes a refusal of a code and a sentence.
    """

    def __init__(self, settings: ServeSettings, metrics: Metrics, refused: Callable[[str, str], Refused]) -> None:
        self.settings, self.metrics, self._refused = settings, metrics, refused
        #: The command of a recogniser's process for a language.
        self.command: Callable[[str], Sequence[str]] = lambda language: command_of(settings, language)
        self.taken = 0
        self._tasks: set[asyncio.Task[None]] = set()
        metrics.gauge("redraft_listening", "Sessions whose speech is recognised", lambda: self.taken)

    @property
    def offered(self) -> bool:
        """Whether the operator has switched a recogniser on."""
        return self.settings.recogniser is not None

    def take(self, language: str) -> Recognition:
        """A recogniser, with one of the places; `leave` gives that back.

        Raises:
            Refused: all places are taken.
        """
        if self.taken >= self.settings.listeners:
            raise self._refused(
                "capacity",
                f"all {self.settings.listeners} places for speech recognition on this server are taken: try again "
                "later, or send text",
            )
        self.taken += 1
        return Recognition(self.command(language), details=self.settings.log_text)

    def public(self, sentence: str) -> str:
        """A sentence of a recogniser as clients may read it: without paths and addresses of the operator."""
        name, _, place = (self.settings.recogniser or "").partition(":")
        for private, word in ((place.rstrip("/"), name), (self.settings.punctuation or "", "punctuation")):
            if private:
                sentence = sentence.replace(f"{private}/ ", f"{word} ").replace(private, word)
        return sentence

    def leave(self) -> None:
        """Give a place back."""
        self.taken -= 1

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task that `close` waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Stop all recognisers, and wait until their processes have gone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def command_of(settings: ServeSettings, language: str) -> list[str]:
    """The command of a recogniser's process."""
    return arguments(settings.recogniser or "", language, settings.pause, settings.punctuation)


def check_ears(settings: ServeSettings) -> None:
    """Whether there is such a recogniser.

    Raises:
        OptionError: there is none of this name, or a punctuation model without one.
    """
    if settings.recogniser is not None:
        check_recogniser(settings.recogniser)
    elif settings.punctuation is not None:
        raise OptionError("punctuation needs a recogniser, whose text it is for")


def try_ears(settings: ServeSettings, languages: Sequence[str]) -> None:
    """Open the recogniser once, so that what is wrong with it is known before anybody speaks.

    Args:
        settings: which one.
        languages: what the model translates from, if it says that.

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
        raise OptionError(f"recogniser {settings.recogniser!r} cannot be opened: its process does not answer") from None
    # Where the model does not say its languages, the recogniser may know another one.
    if said["type"] == "error" and (languages or said.get("kind") != OptionError.__name__):
        raise OptionError(f"recogniser {settings.recogniser!r} cannot be used: {said['message']}")
