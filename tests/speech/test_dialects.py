"""Messages of recognition servers; the messages are as their documentation has them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from redraft.errors import InputError, OptionError
from redraft.speech.dialect import Dialect, ServerHypothesis, find_dialect, pcm
from redraft.speech.dialects import sherpa, vosk, whisperlivekit

SOUND = np.array([0, 0.5, -1, 2], np.float32)


def read(dialect: Dialect, *messages: Any) -> list[ServerHypothesis]:
    return [found for message in messages for found in dialect.read(json.dumps(message))]


def line(text: str | None, start: str, end: str, speaker: int = 1) -> dict[str, Any]:
    return {"speaker": speaker, "text": text, "start": start, "end": end}


def state(*lines: dict[str, Any], buffer: str = "", **more: Any) -> dict[str, Any]:
    return {"status": "active_transcription", "lines": lines, "buffer_transcription": buffer, **more}


def finals(dialect: Dialect, *messages: Any) -> list[str]:
    return [found.text for found in read(dialect, *messages) if found.final]


def test_samples_as_integers() -> None:
    assert np.frombuffer(pcm(SOUND), "<i2").tolist() == [0, 16383, -32767, 32767]


class TestVosk:
    def test_utterance(self) -> None:
        dialect = vosk.dialect()
        assert json.loads(dialect.greeting) == {"config": {"sample_rate": 16_000, "words": True}}
        assert dialect.goodbye == '{"eof" : 1}' and dialect.listens
        assert dialect.audio(SOUND) == pcm(SOUND)
        words = [
            {"conf": 1.0, "start": 0.84, "end": 1.02, "word": "one"},
            {"conf": 0.9, "start": 1.02, "end": 1.5, "word": "two"},
        ]
        found = read(
            dialect,
            {"partial": ""},
            {"partial": "one"},
            {"partial": "one too"},
            {"result": words, "text": "one two"},
            {"text": ""},
        )
        assert found == [
            ServerHypothesis("", end=4 / 16_000),
            ServerHypothesis("one"),
            ServerHypothesis("one too"),
            ServerHypothesis("one two", True, 0.84, 1.5),
            ServerHypothesis("", True),
        ]

    def test_alternatives(self) -> None:
        """As of a server with ``VOSK_ALTERNATIVES``."""
        best = {"confidence": 9.5, "text": "one two", "result": [{"start": 0.5, "end": 1.5, "word": "one"}]}
        found = read(vosk.dialect(), {"partial": "one"}, {"alternatives": [best, {"text": "won two"}]})
        assert found == [ServerHypothesis("one"), ServerHypothesis("one two", True, 0.5, 1.5)]

    @pytest.mark.parametrize(
        ("message", "complaint"),
        [
            ("{", "not valid JSON"),
            ("[]", "must be a JSON object"),
            ("{}", "partial or text must be given"),
            ('{"alternatives": [{"confidence": 1}]}', "alternatives must be a list of texts"),
            ('{"partial": 3}', "partial must be a string of whole characters, not 3"),
            ('{"text": "a", "result": [{"word": "a"}]}', "result must be a list of words with their times"),
            (b"\0\1", "the message must be text, not bytes"),
        ],
    )
    def test_messages_that_are_none(self, message: str | bytes, complaint: str) -> None:
        with pytest.raises(InputError, match=complaint):
            vosk.dialect().read(message)


class TestSherpa:
    def test_server_in_c(self) -> None:
        dialect = sherpa.dialect()
        assert np.frombuffer(dialect.audio(SOUND), "<f4").tolist() == SOUND.tolist()
        common = {"is_eof": False, "start_time": 0.0, "tokens": [" A"], "words": []}
        found = read(
            dialect,
            {"text": "", "segment": 0, "is_final": False, "timestamps": [], **common},
            {"text": "AFTER", "segment": 0, "is_final": False, "timestamps": [0.64], **common},
            {"text": "AFTER EARLY", "segment": 0, "is_final": True, "timestamps": [0.64, 1.2], **common},
            {**common, "text": "NIGHT", "segment": 1, "is_final": False, "timestamps": [0.5], "start_time": 3.2},
            {**common, "text": "NIGHTFALL", "segment": 1, "is_final": True, "timestamps": [0.5], "start_time": 3.2},
        )
        assert found == [
            ServerHypothesis("", False, 0.0, None),
            ServerHypothesis("AFTER", False, 0.0, 0.64),
            ServerHypothesis("AFTER EARLY", True, 0.0, 1.2),
            ServerHypothesis("NIGHT", False, 3.2, 3.7),
            ServerHypothesis("NIGHTFALL", True, 3.2, 3.7),
        ]
        assert not dialect.over
        assert dialect.read("Done!") == [] and dialect.over

    def test_server_in_python_marks_no_ends(self) -> None:
        found = read(
            sherpa.dialect(),
            {"text": "AFTER", "segment": 0},
            {"text": "AFTER EARLY", "segment": 0},
            {"text": "", "segment": 1},
            {"text": "NIGHTFALL", "segment": 1},
        )
        assert found == [
            ServerHypothesis("AFTER"),
            ServerHypothesis("AFTER EARLY"),
            ServerHypothesis("AFTER EARLY", True),
            ServerHypothesis(""),
            ServerHypothesis("NIGHTFALL"),
        ]

    def test_messages_that_are_none(self) -> None:
        for message, complaint in (
            ("Done", "not valid JSON"),
            ('{"text": "a"}', "segment must be given"),
            ('{"text": "a", "segment": -1}', "segment must be a whole number of 0 or more, not -1"),
            ('{"text": "a", "segment": 0, "timestamps": ["x"]}', "timestamps must be a list of seconds"),
        ):
            with pytest.raises(InputError, match=complaint):
                sherpa.dialect().read(message)


class TestWhisperLiveKit:
    def test_marks_that_end_no_sentence(self) -> None:
        text = " I saw Mr. Smith in the U.S. Senate, e.g. yesterday. It was No. 5. Is it Dr."
        messages = [state(line(text, "0:00:00", "0:00:09")), state(line(f"{text} Brown? Yes", "0:00:00", "0:00:10"))]
        ends = ["I saw Mr. Smith in the U.S. Senate, e.g. yesterday.", "It was No. 5. Is it Dr. Brown?"]
        assert finals(whisperlivekit.dialect(), *messages) == ends
        assert finals(whisperlivekit.dialect(), state(line(" यह घर है। वह", "0:00:00", "0:00:02"))) == ["यह घर है।"]

    @pytest.mark.parametrize(
        ("start", "seconds"),
        [("1 day, 0:00:02.50", 86_402.5), ("26:00:00", 93_600), ("-1:59:59.98", 0), ("-1 day, 23:59:59", 0)],
    )
    def test_times(self, start: str, seconds: float) -> None:
        (found,) = read(whisperlivekit.dialect(), state(line(" It is.", start, "90:00:00")))
        assert (found.text, found.start) == ("It is.", seconds)

    def test_sentences_are_utterances(self) -> None:
        dialect = whisperlivekit.dialect()
        assert not dialect.listens
        assert read(dialect, {"type": "config", "useAudioWorklet": True, "mode": "full"}) == []
        assert dialect.listens and dialect.goodbye == b""
        assert dialect.audio(SOUND) == pcm(SOUND)
        found = read(
            dialect,
            {**state(), "status": "no_audio_detected"},
            state(buffer="Hello"),
            state(line("Hello world.", "0:00:01", "0:00:03"), buffer=" How"),
            state(line("Hello world. How are", "0:00:01", "0:00:04"), buffer=" you"),
            state(line("Hello world. How are you? At 7.", "0:00:01", "0:00:05"), buffer="15"),
            state(line("Hello world. How are you? At 7.15 sharp", "0:00:01", "0:00:06")),
        )
        assert found == [
            ServerHypothesis("Hello", committed=0),
            ServerHypothesis("Hello world.", True, 1, 3),
            ServerHypothesis("How", committed=0),
            ServerHypothesis("How are you", start=3, committed=2),
            ServerHypothesis("How are you?", True, 3, 4.5),
            ServerHypothesis("At 7. 15", start=4.5, committed=1),  # the number goes on
            ServerHypothesis("At 7.15 sharp", start=4.5, committed=3),
        ]

    def test_pause_or_another_speaker_ends_what_is_open(self) -> None:
        dialect = whisperlivekit.dialect()
        first = line("no full stop here", "0:00:01", "0:00:03")
        assert read(dialect, state(first)) == [ServerHypothesis("no full stop here", start=1, committed=4)]
        silent = line(None, "0:00:03", "0:00:09", speaker=-2)
        assert read(dialect, state(first, silent)) == [ServerHypothesis("no full stop here", True, 1, 3)]
        second = line("Me neither", "0:01:09", "0:01:10", speaker=2)
        (found,) = read(dialect, state(first, silent, second))
        assert found == ServerHypothesis("Me neither", start=69, speaker="2", committed=2)
        assert read(dialect, state(second, buffer="!")) == [
            ServerHypothesis("Me neither !", start=69, speaker="2", committed=1)
        ]  # lines leave at the front

    def test_start_moves(self) -> None:
        """A server that forgets old words sends the others as a line with another start."""
        dialect = whisperlivekit.dialect()
        assert finals(dialect, state(line(" One is here. Two is here. Thr", "0:00:00.00", "0:05:00.00"))) == [
            "One is here.",
            "Two is here.",
        ]
        moved = line(" is here. Two is here. Three", "0:00:00.40", "0:05:00.40")
        assert read(dialect, state(moved))[-1].text == "Three"
        moved = line(" Two is here. Three is here. Four", "0:02:00.40", "0:05:10.40")
        assert finals(dialect, state(moved)) == ["Three is here."]

    def test_forgotten_before_its_end(self) -> None:
        """Words that leave before their sentence has ended are final all the same."""
        dialect = whisperlivekit.dialect()
        assert not finals(dialect, state(line(" one two three", "0:00:00.00", "0:00:03.00")))
        assert finals(dialect, state(line(" two three four", "0:00:01.00", "0:00:04.00"))) == ["one two three"]
        assert read(dialect, state(line(" three four", "0:00:02.00", "0:00:04.00")))[-1].text == "four"

    def test_line_is_split_and_joined(self) -> None:
        dialect = whisperlivekit.dialect()
        whole = line(" One is here. Two is here. Three", "0:00:00.00", "0:00:09.00")
        assert finals(dialect, state(whole)) == ["One is here.", "Two is here."]
        parts = (
            line(" One is here.", "0:00:00.00", "0:00:04.00"),
            line(" Two is here.", "0:00:04.10", "0:00:08.00", speaker=2),
            line(" Three is here.", "0:00:08.10", "0:00:11.00"),
        )
        found = read(dialect, state(*parts))
        assert [(each.text, each.final, each.speaker) for each in found] == [("Three is here.", True, "1")]
        assert not finals(dialect, state(line(" One is here. Two is here. Three is here.", "0:00:00.00", "0:00:11.00")))

    def test_revised_behind_its_end(self) -> None:
        """Words behind a sentence that is shortened after its end are not lost."""
        dialect = whisperlivekit.dialect()
        begun = line(" Is that right uh huh? Yes", "0:00:00.00", "0:00:05.00")
        assert finals(dialect, state(begun)) == ["Is that right uh huh?"]
        revised = line(" Is that right? Yes. Good.", "0:00:00.00", "0:00:06.00")
        assert finals(dialect, state(revised)) == ["Yes.", "Good."]

    @pytest.mark.parametrize("repeated", [False, True])
    def test_words_whose_speaker_is_unknown_wait(self, repeated: bool) -> None:
        """Older releases also have them in the lines, with speaker 1."""
        dialect = whisperlivekit.dialect()
        lines = [line(" Hello there.", "0:00:00.00", "0:00:02.00", speaker=2)]
        later = [line(" Yes.", "0:00:03.00", "0:00:04.00")] if repeated else []
        found = read(dialect, state(*lines, *later, buffer_diarization=" Yes."))
        assert [(each.text, each.final, each.speaker) for each in found] == [
            ("Hello there.", True, "2"),
            ("Yes.", False, "2"),
        ]
        found = read(dialect, state(*lines, line(" Yes.", "0:00:03.00", "0:00:04.00", speaker=3)))
        assert [(each.text, each.final, each.speaker) for each in found] == [("Yes.", True, "3")]

    def test_chinese(self) -> None:
        found = read(whisperlivekit.dialect(), state(line("你好。我是", "0:00:00", "0:00:02"), buffer="你"))
        assert found == [ServerHypothesis("你好。", True, 0, 1.2), ServerHypothesis("我是你", start=1.2, committed=2)]

    def test_server_that_takes_files_gets_one(self) -> None:
        dialect = whisperlivekit.dialect()
        read(dialect, {"type": "config", "useAudioWorklet": False})
        head = dialect.audio(SOUND)
        assert head[:4] == b"RIFF" and head[8:12] == b"WAVE" and head[44:] == pcm(SOUND)
        assert int.from_bytes(head[24:28], "little") == 16_000
        assert dialect.audio(SOUND) == pcm(SOUND)

    def test_end(self) -> None:
        dialect = whisperlivekit.dialect()
        assert read(dialect, {"type": "ready_to_stop"}) == [] and dialect.over

    @pytest.mark.parametrize(
        ("message", "complaint"),
        [
            ({"type": "snapshot", "seq": 1}, "lines must be given, or type must be config or ready_to_stop"),
            ({"lines": [{"text": "a"}]}, "lines must be a list of lines with text, start and end"),
            ({"lines": [], "error": "FFmpeg failed"}, "the server reports: FFmpeg failed"),
        ],
    )
    def test_messages_that_are_none(self, message: Any, complaint: str) -> None:
        with pytest.raises(InputError, match=complaint):
            read(whisperlivekit.dialect(), message)


def test_addresses() -> None:
    assert find_dialect("vosk:ws://localhost:2700") == (vosk, "ws://localhost:2700/")
    assert find_dialect("whisperlivekit:wss://host")[1] == "wss://host/asr"
    assert find_dialect("whisperlivekit:ws://host:8000/asr?language=fr")[1] == "ws://host:8000/asr?language=fr"
    for spec, complaint in {
        "kaldi:ws://localhost:2700": "server 'kaldi' is not known; known are .*vosk.*, as in vosk:ws://127.0.0.1:2700",
        "vosk:http://localhost": "the address of vosk must be like ws://127.0.0.1:2700, not 'http://localhost'",
        "vosk:ws://": "must be like",
        "vosk:ws://host:99999": "must be like",
    }.items():
        with pytest.raises(OptionError, match=complaint):
            find_dialect(spec)
