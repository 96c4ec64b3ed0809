"""The plug-in for LiveKit, with a plug-in that says what it is given: python -m pytest examples."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

pytest.importorskip("livekit.agents", reason="livekit-agents is not installed")

from livekit import rtc
from livekit.agents import DEFAULT_API_CONNECT_OPTIONS, stt
from livekit.agents.language import LanguageCode

from examples.livekit_stt import FINAL, INTERIM, TranslatedSTT
from redraft import AsyncTranslator, Caption, Translator, Update

SAID = [("Good morning.",), ("The children", "The children are playing", "The children are playing in the garden.")]


class Scripted(stt.STT):
    """Recognises `SAID` once the audio has ended."""

    def __init__(self) -> None:
        super().__init__(capabilities=stt.STTCapabilities(streaming=True, interim_results=True))
        self.frames = 0

    async def _recognize_impl(self, *_: Any, **__: Any) -> stt.SpeechEvent:
        raise NotImplementedError

    def stream(self, **_: Any) -> stt.RecognizeStream:
        return ScriptedStream(stt=self, conn_options=DEFAULT_API_CONNECT_OPTIONS)


class ScriptedStream(stt.RecognizeStream):
    async def _run(self) -> None:
        async for item in self._input_ch:
            self._stt.frames += isinstance(item, rtc.AudioFrame)
        for texts in SAID:
            self._event_ch.send_nowait(stt.SpeechEvent(stt.SpeechEventType.START_OF_SPEECH))
            for text in texts:
                kind = FINAL if text == texts[-1] else INTERIM
                self._event_ch.send_nowait(
                    stt.SpeechEvent(kind, alternatives=[stt.SpeechData(LanguageCode("en"), text)])
                )
            self._event_ch.send_nowait(stt.SpeechEvent(stt.SpeechEventType.END_OF_SPEECH))


async def heard(plugin: stt.STT) -> list[stt.SpeechEvent]:
    """The events of a stream for a second of silence."""
    async with plugin.stream() as stream:
        for _ in range(10):
            stream.push_frame(rtc.AudioFrame(bytes(3200), 16_000, 1, 1600))
        stream.end_input()
        return [event async for event in stream]


def test_transcripts_are_translated() -> None:
    scripted = Scripted()
    every = partial(AsyncTranslator, partial(Translator.open, "demo", to=["de"]), ahead=0)  # skips no update
    events = asyncio.run(heard(TranslatedSTT(scripted, every)))
    assert scripted.frames == 10
    assert sum(event.type is stt.SpeechEventType.START_OF_SPEECH for event in events) == len(SAID)
    finals = [event.alternatives[0] for event in events if event.type is FINAL]
    with Translator.open("demo", to=["de"]) as translator:
        updates = [Update(str(n), 0, texts[-1], final=True) for n, texts in enumerate(SAID)]
        wanted = [caption for each in updates for caption in translator.translate(each) if isinstance(caption, Caption)]
    assert [(each.language, each.source_texts) for each in finals] == [("de", [texts[-1]]) for texts in SAID]
    assert finals[0].text == wanted[0].text and finals[1].text.split()[-1] == wanted[1].text.split()[-1]
    assert any(event.type is INTERIM for event in events)
