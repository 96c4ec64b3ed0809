"""The client's decisions about what viewers see, which it declares on every connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from pydantic import ValidationError

from redraft import protocol
from redraft.captions.languages import same_of
from redraft.client.wire import pieces
from redraft.errors import InputError
from redraft.protocol.codes import describe

#: Utterance and language.
Key: TypeAlias = tuple[str, str]
M = TypeVar("M", bound=protocol.Message)


class Control:
    """Controls what viewers of a session see. Its owner always gets all captions.

    Decisions on one subject are numbered, here and on the server, and the highest number counts.

    Args:
        targets: the languages of the session.
        wake: called before something is queued to send; raises `ServerError` if the session is over.
        has_final: returns whether there is a final caption of an utterance in a language.
    """

    def __init__(self, targets: Sequence[str], wake: Callable[[], None], has_final: Callable[[Key], bool]) -> None:
        self._targets, self._wake, self._has_final = tuple(targets), wake, has_final
        #: The latest decision on each subject, in the order in which they were made.
        self._decisions: dict[tuple[str, ...], protocol.Control] = {}
        #: Decisions that have not been sent on this connection.
        self._news: dict[tuple[str, ...], protocol.Control] = {}

    @property
    def paused(self) -> bool:
        """Whether captions are held back from viewers."""
        latest = self._decisions.get(("pause",))
        return isinstance(latest, protocol.Pause) and latest.paused

    @property
    def hidden(self) -> set[Key]:
        """Captions that viewers do not see."""
        hides = (each for each in self._decisions.values() if isinstance(each, protocol.Hide) and each.hidden)
        return {(each.utterance, each.language or "") for each in hides}

    def is_hidden(self, utterance: str, language: str) -> bool:
        """Whether viewers do not see a caption; what was spoken is hidden with all of its translations."""
        latest = self._decisions.get(("hide", utterance, language))
        if latest is None and language not in self._targets:
            return all(self.is_hidden(utterance, each) for each in self._targets)
        return isinstance(latest, protocol.Hide) and latest.hidden

    def pause(self, paused: bool = True) -> None:
        """Hold captions back from viewers and the transcript; False releases them.

        Raises:
            ServerError: the session is over.
        """
        self._decide(protocol.Pause(paused=paused))

    def hide(self, utterance: str, language: str | None = None, *, hidden: bool = True) -> None:
        """Hide the captions of an utterance from viewers and the transcript; ``hidden=False`` shows them again.

        Args:
            utterance: its name; its captions need not have arrived.
            language: None for all.

        Raises:
            InputError: the utterance or the language is invalid.
            ServerError: the session is over.
        """
        for each in self._targets if language is None else (self._target(language),):
            self._decide(_made(protocol.Hide, utterance=utterance, language=each, hidden=hidden))

    def correct(self, utterance: str, language: str, text: str) -> None:
        """Replace the text of a final caption, for viewers and in the transcript.

        Raises:
            InputError: the text is empty or too long, or there is no such caption.
            ServerError: the session is over.
        """
        target = self._target(language)
        message = _made(protocol.Correct, utterance=utterance, language=target, text=text)
        if not self._has_final((utterance, target)):
            raise InputError(f"utterance must be one with a final caption in {target}, which can be corrected")
        self._decide(message)

    def name(self, speaker: str, name: str) -> None:
        """Name a speaker, in all captions from now on and in the transcript: Speaker 1 is Anna.

        Args:
            speaker: as updates name who is speaking.

        Raises:
            InputError: one of the names is empty or too long.
            ServerError: the session is over.
        """
        self._decide(_made(protocol.NameSpeaker, speaker=speaker, name=name))

    def _target(self, language: str) -> str:
        """Return a language as the session spells it."""
        return same_of(language, self._targets) or language

    def _decide(self, message: protocol.Control) -> None:
        self._wake()
        about = protocol.subject_of(message)
        number = min(1 + _number(self._decisions.get(about)), protocol.MOST_DECISIONS)
        made = message.model_copy(update={"decision": number})
        for kept in (self._decisions, self._news):
            kept.pop(about, None)  # in order: what was hidden before a release must be hidden before it
            kept[about] = made

    def next(self) -> protocol.Control | None:
        """Return the next decision to send."""
        return self._news.pop(next(iter(self._news))) if self._news else None

    def declaration(self, most: int) -> Iterator[str | protocol.Control]:
        """Yield the messages that declare all decisions, for a new connection.

        Args:
            most: maximum length of a message in bytes.

        Yields:
            A message; or a decision for which a message would be too long.
        """
        self._news.clear()
        return pieces("declare", "decisions", [(each.wire(), each) for each in self._decisions.values()], most)

    def reported(self, message: protocol.Control) -> None:
        """Adopt a decision of another program, which the server reports; it counts if it is later than ours."""
        subject = protocol.subject_of(message)
        if _number(message) > _number(self._decisions.get(subject)):
            self._decisions.pop(subject, None)
            self._decisions[subject] = message


def _made(kind: type[M], **fields: Any) -> M:
    try:
        return kind(**fields)
    except ValidationError as error:
        raise InputError(str(describe(error, kind))) from None


def _number(message: protocol.Control | None) -> int:
    return (message and message.decision) or 0
