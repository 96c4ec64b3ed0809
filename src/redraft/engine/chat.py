"""A model that follows instructions, as a chat: messages in, its own answer out, and nothing is read into either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redraft.backends.load import MakesPrompts
from redraft.captions.chat import ChatTemplate
from redraft.captions.prompt import chat_template, control_token, conversation
from redraft.captions.state import Vocabulary
from redraft.decoding.backend import Backend
from redraft.decoding.decode import decode
from redraft.decoding.methods.ssbd import PreviousOutput
from redraft.decoding.rules import Exact
from redraft.decoding.segments import PromptSegment
from redraft.decoding.types import Asking, Prompt
from redraft.engine.lanes import Ids, Task, Wish
from redraft.errors import OptionError


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a chat, or a translation.

    Attributes:
        text: what the model wrote, of a chat as it wrote it.
        cut: whether it was cut before the model ended it.
        read: tokens of the prompts.
        written: tokens of the answer.
        remarks: what is wrong with it all the same, such as another script; one sentence each.
    """

    text: str
    cut: bool = False
    read: int = 0
    written: int = 0
    remarks: tuple[str, ...] = ()


class Chat:
    """Answers messages greedily, or continues a text."""

    def __init__(self, template: ChatTemplate, backend: Backend, vocabulary: Vocabulary) -> None:
        self._template, self._backend, self._vocabulary = template, backend, vocabulary
        self._start, self._end = (control_token(backend.metadata, name) for name in ("bos", "eos"))

    def answer(self, messages: Sequence[tuple[str, str]], most: int | None, told: Mapping[str, object]) -> Task:
        """Return what answers messages.

        Args:
            messages: role and content of each.
            most: maximum number of tokens; None for what the context has left.
            told: arguments of the model's chat template.

        Raises:
            ModelError: the template refuses the messages.
            OptionError: they leave no room for an answer.
        """
        ids = self._backend.encode(conversation(self._template, messages, self._end, told))
        return self._task(ids, self._backend.tokenize(messages[-1][1]), most, "messages")

    def complete(self, text: str, most: int | None) -> Task:
        """Return what continues a text, in which control tokens are recognised.  Raises as `answer`."""
        ids = self._backend.encode([PromptSegment(text, special=True)])
        return self._task(ids, ids, most, "prompt")

    def bytes_of(self, ids: Ids) -> bytes:
        """Return the bytes of tokens."""
        return b"".join(map(self._vocabulary.token_bytes, ids))

    def _task(self, given: Sequence[int], source: Sequence[int], most: int | None, field: str) -> Task:
        ids, length, vocabulary = tuple(given), self._vocabulary.context_length, self._vocabulary
        if ids[:1] == ids[1:2] == (self._start,):
            ids = ids[1:]  # the template contains it already
        if len(ids) >= length:
            problem = f"leave no room for an answer: they have {len(ids)} tokens, and the context length is {length}"
            raise OptionError(problem, field)
        limit = min(most or length, length - len(ids))

        def run(draft: Ids) -> Asking[tuple[Answered, Ids]]:
            output = yield from decode(
                Prompt(ids), PreviousOutput(), Exact(), previous=draft, end_tokens=vocabulary.end_tokens, limit=limit
            )
            text = self.bytes_of(output.tokens).decode(errors="replace")
            return Answered(text, output.cut, len(ids), len(output.tokens)), output.tokens

        return Task(Wish("chat", ids, tuple(source)), run)


def chat_of(backend: Backend, vocabulary: Vocabulary) -> Chat | None:
    """Return a model as a chat; None if it only translates.  Raises `ModelError` if its template cannot be used."""
    template = None if isinstance(backend, MakesPrompts) else chat_template(backend.metadata)
    return None if template is None else Chat(template, backend, vocabulary)
