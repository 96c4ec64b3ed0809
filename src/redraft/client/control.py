"""Control what viewers see of a session; requests are kept until the server has confirmed them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError

from redraft import protocol
from redraft.captions.languages import same_of
from redraft.errors import InputError
from redraft.protocol.fields import describe

#: Utterance and language.
Key: TypeAlias = tuple[str, str]
M = TypeVar("M", bound=protocol.Message)


class Control:
    """Controls what viewers of a session see. Its owner always gets all captions.

    Args:
        targets: the languages of the session.
        wake: called before something is queued to send; raises `ServerError` if the session is over.

    Attributes:
        paused: whether captions are held back from viewers.
        hidden: captions that viewers do not see.
    """

    def __init__(self, targets: Sequence[str], wake: Callable[[], None]) -> None:
        self._targets, self._wake = tuple(targets), wake
        self.paused = False
        self.hidden: set[Key] = set()
        #: Unconfirmed requests by subject; a newer one replaces an older one.
        self._asked: dict[tuple[str, ...], protocol.Control] = {}
        self._unsent: dict[tuple[str, ...], protocol.Control] = {}

    def pause(self, paused: bool = True) -> None:
        """Hold captions back from viewers and the transcript; False releases them.

        Raises:
            ServerError: the session is over.
        """
        self._ask(protocol.Pause(paused=paused))

    def hide(self, utterance: str, language: str | None = None, *, hidden: bool = True) -> None:
        """Hide the captions of an utterance from viewers and the transcript; ``hidden=False`` shows them again.

        If the server has no such utterance, iterating over the client yields a failure.

        Args:
            utterance: its name; it need not be final.
            language: None for all.

        Raises:
            InputError: the utterance or the language is invalid.
            ServerError: the session is over.
        """
        for each in self._targets if language is None else (self._target(language),):
            self._ask(_made(protocol.Hide, utterance=utterance, language=each, hidden=hidden))

    def correct(self, utterance: str, language: str, text: str) -> None:
        """Replace the text of a final caption, for viewers and in the transcript.

        If the server has no such caption, iterating over the client yields a failure.

        Raises:
            InputError: the text is empty or too long.
            ServerError: the session is over.
        """
        self._ask(_made(protocol.Correct, utterance=utterance, language=self._target(language), text=text))

    def _target(self, language: str) -> str:
        """Return a language as the session spells it."""
        return same_of(language, self._targets) or language

    def _ask(self, message: protocol.Control) -> None:
        """Queue a message; it is sent again after a drop until it is confirmed."""
        self._wake()
        if isinstance(message, protocol.Pause):
            self.paused = message.paused
        elif isinstance(message, protocol.Hide):
            self._note(_key_of(message), message.hidden)
        about = _about(message)
        self._asked[about] = self._unsent[about] = message

    def next(self, *, pauses: bool = False) -> protocol.Control | None:
        """Return the next message to send; with ``pauses``, only one that must precede later updates."""
        waiting = (
            about
            for about, message in self._unsent.items()
            if not pauses or (isinstance(message, protocol.Pause) and message.paused)
        )
        about = next(waiting, None)
        return None if about is None else self._unsent.pop(about)

    def confirmed(self, message: protocol.Paused | protocol.Hidden | protocol.Final | protocol.Error) -> None:
        """Remove a request that the server has executed or rejected, whether this client or another one made it."""
        about = _about(message)
        mine = self._asked.get(about)
        if isinstance(message, protocol.Error):
            self._asked.pop(about, None)
            if message.request == "hide":
                self.hidden.discard((about[1], about[2]))
        elif isinstance(message, protocol.Paused) and mine in (None, protocol.Pause(paused=message.paused)):
            self.paused = message.paused
            self._asked.pop(about, None)
        elif isinstance(message, protocol.Hidden):
            if mine is None:
                self._note(_key_of(message), message.hidden)
            elif isinstance(mine, protocol.Hide) and mine.hidden == message.hidden:
                del self._asked[about]
        elif isinstance(mine, protocol.Correct) and isinstance(message, protocol.Final) and mine.text == message.text:
            del self._asked[about]

    def again(self) -> None:
        """After a reconnection, queue all unconfirmed requests again."""
        self._unsent = dict(self._asked)

    def _note(self, key: Key, hidden: bool) -> None:
        (self.hidden.add if hidden else self.hidden.discard)(key)


def _made(kind: type[M], **fields: Any) -> M:
    try:
        return kind(**fields)
    except ValidationError as error:
        raise InputError(str(describe(error, kind))) from None


def _key_of(message: protocol.Hide | protocol.Hidden) -> Key:
    return message.utterance, message.language or ""


def _about(message: Any) -> tuple[str, ...]:
    """Return the subject of a message; a newer message replaces one with the same subject."""
    name = str(message.request if isinstance(message, protocol.Error) else message.type)
    kind = {"paused": "pause", "hidden": "hide", "final": "correct"}.get(name, name)
    if kind == "pause":
        return (kind,)
    return kind, str(message.utterance), str(message.language)
