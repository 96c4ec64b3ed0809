"""The operator's recogniser: its checks, its processes, and admission of a limited number of sessions at a time.

Every stream of audio has a recogniser in a separate process.  Some recognisers hold the interpreter lock, which would
block the event loop and the captions of all sessions; streams of others influence each other within a process
(`redraft.speech.moonshine`); and a crash of one must not crash the server.
"""

from __future__ import annotations

import asyncio
import subprocess
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from redraft.captions.events import Failure
from redraft.captions.languages import parse_language
from redraft.errors import OptionError
from redraft.protocol.codes import Refused
from redraft.serve.engine.metrics import Metrics
from redraft.serve.settings import ServeSettings
from redraft.speech.endpoint import PAUSE
from redraft.speech.registry import check_recogniser
from redraft.speech.worker import Progress, command, ended

#: Maximum length in bytes of a line from a recogniser's process.
_LONGEST_LINE = 1 << 20
#: Seconds within which a recogniser must start.
_TRIAL_SECONDS = 120


class RecogniserProcess:
    """A process with a recogniser; iterating over `progress` starts it.

    Args:
        command: command line of the process, see `redraft.speech.worker`.
        details: whether to pass on its standard error, which may contain transcript text.
    """

    def __init__(self, command: Sequence[str], *, details: bool = False) -> None:
        self._command, self._details = command, details
        self._process: Process | None = None
        self._unsent = bytearray()
        self._finished = False
        #: Whether it was killed; its later output is ignored.
        self.killed = False

    def feed(self, samples: bytes) -> None:
        """Send samples to the recogniser."""
        self._unsent += samples
        self._send()

    def finish(self) -> None:
        """End the audio: the current utterance is finished, then the process ends."""
        self._finished = True
        self._send()

    def kill(self) -> None:
        """Kill the process."""
        self.killed = True
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def progress(self) -> AsyncGenerator[Progress, None]:
        """Yield the process's messages until it ends; closing the generator kills it."""
        try:
            # In a separate session, so that after Ctrl-C in a terminal it can recognise the rest.
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                stderr=None if self._details else DEVNULL,
                limit=_LONGEST_LINE,
                start_new_session=True,
            )
        except OSError as error:
            yield Progress(item=Failure(f"the recogniser cannot be started: {error.strerror}"))
            return
        try:
            async for each in self._lines(self._process):
                yield each
        finally:
            self.kill()
            await self._process.wait()

    async def _lines(self, process: Process) -> AsyncGenerator[Progress, None]:
        assert process.stdout is not None  # noqa: S101  # for the type checker
        if self.killed:
            self.kill()
        self._send()
        last = Progress()
        try:
            while line := await process.stdout.readline():
                yield (last := Progress.read(line))
        except ValueError:  # too long, or invalid
            failure = Failure("the recogniser's process sent an invalid message")
            yield Progress(last.samples, last.cpu, failure)
            return
        status = await process.wait()
        if status and not self.killed and not isinstance(last.item, Failure):
            yield Progress(last.samples, last.cpu, Failure(f"the recogniser's process {ended(status)}"))

    def _send(self) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        if self._unsent:
            process.stdin.write(bytes(self._unsent))
            self._unsent.clear()
        if self._finished:
            process.stdin.close()


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
        return len(self._tasks)

    def open(self, language: str) -> RecogniserProcess:
        """Return a recogniser, to be used in a task of `run`.  Raises `Refused` if all places are taken."""
        if self.taken >= self.settings.listeners:
            raise Refused(
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
        """Start a task that takes a place; ``over`` is called once it has ended for any reason and has left it."""
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
        tried = subprocess.run(
            command_of(settings, language), stdin=subprocess.DEVNULL, capture_output=True, timeout=_TRIAL_SECONDS
        )
        answer = Progress.read(tried.stdout.partition(b"\n")[0])
    except (OSError, ValueError, subprocess.TimeoutExpired):
        sentence = f"recogniser {settings.recogniser!r} cannot be opened: its process does not answer; try it with"
        raise OptionError(f"{sentence} redraft listen --recogniser {settings.recogniser}") from None
    # If the model declares no languages, the recogniser may still support another one.
    if isinstance(answer.item, Failure) and (languages or answer.kind != OptionError.__name__):
        raise OptionError(f"recogniser {settings.recogniser!r} cannot be used: {answer.item.message}")
