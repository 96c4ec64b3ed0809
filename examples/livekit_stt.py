"""Translation in LiveKit Agents: a speech-to-text plug-in that translates what another one recognises.

    from livekit.agents import AgentSession
    from livekit_stt import TranslatedSTT
    from redraft import AsyncTranslator

    session = AgentSession(stt=TranslatedSTT(deepgram.STT(), lambda: AsyncTranslator.open("demo", to=["de"])))

An agent's room, and its language model, get the translation in place of the transcript, interim and final, with the
original in `source_texts`.  On a server with many rooms, open `redraft.client.Client("http://127.0.0.1:8765", ["de"])`
instead.  Needs livekit-agents; tested with 1.8.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, NOT_GIVEN, APIConnectOptions, NotGivenOr, stt
from livekit.agents.language import LanguageCode

from redraft import AsyncTranslator, Caption, Update

FINAL, INTERIM = stt.SpeechEventType.FINAL_TRANSCRIPT, stt.SpeechEventType.INTERIM_TRANSCRIPT
PREFLIGHT = stt.SpeechEventType.PREFLIGHT_TRANSCRIPT


class TranslatedSTT(stt.STT):
    """Recognises with another plug-in, and translates.

    Args:
        wrapped: recognises; it must stream.
        translator: opens a translator into one language, for each stream.
    """

    def __init__(self, wrapped: stt.STT, translator: Callable[[], AsyncTranslator]) -> None:
        can = stt.STTCapabilities(streaming=True, interim_results=True, offline_recognize=False)
        super().__init__(capabilities=can)
        self.wrapped, self.translator = wrapped, translator

    async def _recognize_impl(self, *_: Any, **__: Any) -> stt.SpeechEvent:
        raise NotImplementedError("TranslatedSTT only streams")

    def stream(
        self,
        *,
        language: NotGivenOr[str] = NOT_GIVEN,
        conn_options: APIConnectOptions = DEFAULT_API_CONNECT_OPTIONS,
    ) -> stt.RecognizeStream:
        """Return a stream that takes audio and yields translations."""
        recognising = self.wrapped.stream(language=language, conn_options=conn_options)
        return _Translating(self, recognising, conn_options)


class _Translating(stt.RecognizeStream):
    """Audio goes to the wrapped stream, its transcripts to the translator, and captions to the agent."""

    def __init__(self, owner: TranslatedSTT, wrapped: stt.RecognizeStream, conn_options: APIConnectOptions) -> None:
        super().__init__(stt=owner, conn_options=conn_options)
        self._open, self._wrapped = owner.translator, wrapped

    async def _run(self) -> None:
        async with self._open() as translator, self._wrapped, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._hear())
            tasks.create_task(self._send(translator))
            tasks.create_task(self._show(translator))

    async def _hear(self) -> None:
        async for item in self._input_ch:
            if isinstance(item, self._FlushSentinel):
                self._wrapped.flush()
            else:
                self._wrapped.push_frame(item)
        self._wrapped.end_input()

    async def _send(self, translator: AsyncTranslator) -> None:
        utterance = seq = 0
        async for event in self._wrapped:
            if event.type in (FINAL, INTERIM, PREFLIGHT) and event.alternatives:
                heard, final = event.alternatives[0], event.type is FINAL
                await translator.send(Update(str(utterance), seq, heard.text, final=final, speaker=heard.speaker_id))
                utterance, seq = (utterance + 1, 0) if final else (utterance, seq + 1)
            elif event.type not in (FINAL, INTERIM, PREFLIGHT):
                self._event_ch.send_nowait(event)
        await translator.end()

    async def _show(self, translator: AsyncTranslator) -> None:
        async for caption in translator:
            if not isinstance(caption, Caption):
                logging.getLogger(__name__).warning("not translated: %s", caption.message)
            elif caption.text or caption.final:
                language = LanguageCode(caption.language)
                text = stt.SpeechData(
                    language,
                    caption.text,
                    speaker_id=caption.speaker,
                    source_texts=[caption.source],
                    target_languages=[language],
                )
                self._event_ch.send_nowait(stt.SpeechEvent(FINAL if caption.final else INTERIM, alternatives=[text]))
