"""One-shot requests: whole texts and chats, which are no sessions.

They wait for their turn (`redraft.engine.lanes`), and are refused only if too many wait, or for too long.  A text
is cut into sentences, since models translate a long text only in part; a sentence that fails, or is cut, fails the
request.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from redraft import deadlines
from redraft.captions.events import Caption, Failure, Update
from redraft.captions.sentence import as_sentence, cut_text, join_text
from redraft.captions.spoken import AUTO
from redraft.captions.state import START, State
from redraft.captions.translation import Translation
from redraft.captions.words import has_words
from redraft.decoding.method import COMMON
from redraft.decoding.types import Asking, Prompt
from redraft.engine.chat import Answered, Chat
from redraft.engine.engine import Engine, Engines, Stopped
from redraft.engine.lanes import Failed, Ids, Once, Task, Wish
from redraft.errors import OptionError, RedraftError
from redraft.protocol import Wanted
from redraft.protocol.codes import Refused
from redraft.serve.service import Admission, refused_option

T = TypeVar("T")
#: Translates a sentence in a state; returns the translation, or a failure, and the next state.
_Ask: TypeAlias = Callable[[Translation, State, str], Awaitable[tuple["Translated | Failure", State]]]

#: Maximum number of requests in progress; sentences of one request at a time.
_MOST, _AT_ONCE = 256, 8


@dataclass(frozen=True, slots=True)
class Translated:
    """The translation of a sentence, or of a whole text.

    Attributes:
        remarks: what is wrong with it all the same, such as another script; one sentence each.
        read: tokens of the prompts.
        written: tokens of the translation.
    """

    text: str
    remarks: tuple[str, ...] = ()
    read: int = 0
    written: int = 0


class Requests:
    """All one-shot requests of a server, on its event loop.

    Args:
        most_per_address: how many of one address may be in progress.
    """

    def __init__(self, admission: Admission, engines: Engines, most_per_address: int) -> None:
        self._admission, self._engines, self._most_per_address = admission, engines, most_per_address
        self._by_address: Counter[str] = Counter()

    async def translate(
        self, wanted: Wanted, texts: Sequence[str], address: str, *, lines: bool = True, marks: bool = True
    ) -> list[dict[str, Translated]]:
        """Translate texts, each into every target language.

        Args:
            lines: whether a line break ends a sentence.
            marks: whether a mark such as a full stop does.

        Raises:
            Refused: a sentence fails or is cut, it is impossible, not allowed, or there is no capacity.
        """
        if wanted.also_spoken or wanted.source_language == AUTO:
            raise Refused("option", "a text has one source language, which must be named", "source_language")
        exact, turns = wanted.method is None and wanted.options.keys() <= {*COMMON}, asyncio.Semaphore(_AT_ONCE)
        with self._admitted(address) as engine:

            async def ask(translation: Translation, state: State, sentence: str) -> tuple[Translated | Failure, State]:
                async with turns:
                    found: tuple[Translated | Failure, State] = await self._ask(
                        engine, lambda: _task(translation, state, sentence, exact)
                    )
                return found

            try:
                made = await engine.ask(lambda: self._admission.service.translations(wanted, exact=exact))
            except RedraftError as error:
                raise refused_option(error) from None
            cut = [cut_text(text, lines=lines, marks=marks) for text in texts]
            found = iter(await _together(_text(ask, each, sentences) for sentences in cut for each in made))
        return [{each.language: next(found) for each in made} for _ in texts]

    async def chat(
        self, chat: Chat, make: Callable[[], Task], address: str, heard: Callable[[bytes], None] | None = None
    ) -> Answered:
        """Return the answer to a task of a chat; ``heard`` gets it while it is written, piece by piece.

        Raises:
            Refused: the request is impossible, or there is no capacity.
        """
        loop, seen = asyncio.get_running_loop(), 0

        def grown(ids: Ids) -> None:
            nonlocal seen
            piece, seen = chat.bytes_of(ids[seen:]), len(ids)
            if heard is not None:
                loop.call_soon_threadsafe(heard, piece)

        with self._admitted(address) as engine:
            found: Answered = await self._ask(engine, make, grown if heard else None)
        return found

    @contextmanager
    def _admitted(self, address: str) -> Iterator[Engine]:
        """Choose the engine with the least work.  Raises `Refused` if there are too many requests."""
        self._admission.check_working()
        if self._by_address.total() >= _MOST:
            raise Refused("capacity", f"{_MOST} requests are waiting already: try again later")
        if self._by_address[address] >= self._most_per_address:
            raise Refused("limit", f"{self._most_per_address} requests from this address are waiting already")
        self._by_address[address] += 1
        try:
            with self._engines.chosen(1) as engine:
                yield engine
        finally:
            self._by_address[address] -= 1
            self._by_address += Counter()  # drops addresses without requests

    async def _ask(self, engine: Engine, make: Callable[[], Task], grown: Callable[[Ids], None] | None = None) -> Any:
        """Return the result of a task; it is dropped if the client goes.  Raises `Refused` if it fails."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def answered(result: Any) -> None:
            if not answer.done():
                answer.set_result(result)

        def done(result: Any) -> None:
            loop.call_soon_threadsafe(answered, result)

        request = Once(make, done, grown)
        engine.asked.add(answer)
        engine.post(lambda: engine.scheduler.ask(request))
        try:
            await asyncio.wait({answer}, timeout=deadlines.TURN)
            if not answer.done() and not request.begun:
                raise Refused("capacity", f"the server is busy: no turn came within {deadlines.TURN:g} seconds")
            result = await answer
        except Stopped as error:
            raise refused_option(error) from None
        finally:
            engine.asked.discard(answer)
            if not answer.done() or answer.cancelled():
                engine.post(lambda: engine.scheduler.drop(request))
        if isinstance(result, Exception):
            raise Refused("translation", str(result)) if isinstance(result, Failed) else refused_option(result)
        return result


async def _text(ask: _Ask, translation: Translation, sentences: Sequence[tuple[str, str]]) -> Translated:
    """Translate the sentences of a text, one after another if earlier ones are the context of later ones.

    Raises:
        Refused: one of them failed.
    """
    count, states = len(sentences), [START]

    async def one(place: int) -> Translated:
        sentence = sentences[place][0]
        if not sentence:
            return Translated("")
        found, state = await ask(translation, states[-1], sentence)
        if isinstance(found, Failure):
            where = f"sentence {place + 1} of {count}: " if count > 1 else ""
            raise Refused("translation", f"{where}{found.message}")
        if translation.settings.context:
            states.append(state)
        return found

    if translation.settings.context:
        found = [await one(place) for place in range(count)]
    else:
        found = await _together(map(one, range(count)))
    return Translated(
        join_text((each.text, gap) for each, (_, gap) in zip(found, sentences, strict=True)),
        tuple(dict.fromkeys(remark for each in found for remark in each.remarks)),
        sum(each.read for each in found),
        sum(each.written for each in found),
    )


def _task(translation: Translation, state: State, sentence: str, exact: bool) -> Task:
    """Return what translates a sentence; the result is the translation, or a failure, and the next state.

    Args:
        exact: whether a draft changes nothing but the time.

    Raises:
        OptionError: the sentence is too long for the model.
    """
    text, most = as_sentence(sentence, translation.vocabulary.final_mark), translation.vocabulary.context_length
    prompt = translation.encode(text, (), None) if has_words(text) else Prompt()
    source = prompt.source_ids or prompt.encoder
    if (length := max(len(prompt.ids) + 1, len(prompt.encoder))) > most:
        raise OptionError(f"a sentence is too long: with it a prompt has {length} tokens, and {most} are possible")

    def run(draft: Ids) -> Asking[tuple[tuple[Translated | Failure, State], Ids]]:
        # An unfinished utterance whose output is the draft.
        begun = replace(state, update=Update("1", 0, ""), draft=draft if exact else ())
        events, after = yield from translation.translate(begun, Update("1", 1, sentence, final=True))
        captions = [event for event in events if isinstance(event, Caption)]
        failures = [event for event in events if isinstance(event, Failure)]
        if not captions or captions[-1].cut or (has_words(sentence) and not captions[-1].text):
            return (failures[0] if failures else Failure("there is no translation"), after), ()
        remarks = tuple(failure.message for failure in failures)
        done = Translated(captions[-1].text, remarks, len(after.prompt), len(after.output))
        return (done, after), after.output

    return Task(Wish(translation.language, prompt.ids, source), run)


async def _together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of coroutines; if one fails, the others are given up."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
