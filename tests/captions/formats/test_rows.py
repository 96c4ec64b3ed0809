"""Reading mode: when lines come, which words they have, and when their subtitles are."""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

import pysubs2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redraft.captions.breaks import cells
from redraft.captions.events import Caption, Event, Failure, Update
from redraft.captions.formats.cues import MOST_UNPAIRED, SubtitleWriter, directed
from redraft.captions.formats.rows import RowsWriter
from redraft.captions.formats.write import JsonlWriter, LinesWriter, Output, Writer
from redraft.speech.sentences import in_sentences
from tests.speech.recognised import recognised

#: More for a long search: SUBTITLE_STREAMS=10000.
STREAMS = int(os.environ.get("SUBTITLE_STREAMS", "25"))
PATIENCE, LONGEST = 1.0, 4.0
#: By how many seconds an estimate may be late.
LATE = 4.0
#: What the profile of subtitles allows: lines of a language, and milliseconds.
MOST_LINES, SHORTEST = 2, 1000
TEXT = "Meine Damen und Herren, ich freue mich sehr, heute hier zu sein."


class Kept(Writer):
    """A writer that records its calls, with their times."""

    def __init__(self) -> None:
        self.now = 0.0
        self.events: list[Event] = []
        self.written: list[tuple[float, str]] = []

    def write(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Caption):
            self.written.append((self.now, event.text))

    def close(self) -> None:
        """Nothing is held back."""


def caption(utterance: str, time: float | None, text: str, *, final: bool = False, language: str = "de") -> Caption:
    return Caption(utterance, 0, language, text, final=final, time=time)


def cues(captions: Sequence[Caption], width: int | None = 37) -> tuple[list[tuple[int, int, str]], str]:
    """The subtitles of captions, and the errors."""
    out, errors = io.StringIO(), io.StringIO()
    subtitles = SubtitleWriter(Output("srt", out, errors, ["de"]))
    writer = subtitles if width is None else RowsWriter(subtitles, width, lambda: 0.0)
    for each in captions:
        writer.write(each)
    writer.close()
    assert subtitles.whole
    return [
        (cue.start, cue.end, cue.plaintext) for cue in pysubs2.SSAFile.from_string(out.getvalue(), "srt")
    ], errors.getvalue()


def starts(*captions: Caption) -> list[float]:
    return [start / 1000 for start, _, _ in cues(captions)[0]]


def test_lines_begin_where_their_words_were_spoken() -> None:
    other = "Wir haben lange auf diesen Tag gewartet, und nun ist er da."
    ends = (
        caption("1", 4.0, TEXT, final=True),
        caption("2", 8.0, other, final=True),
        caption("3", 8.4, "Ja.", final=True),
    )
    begins = caption("1", 0.0, ""), caption("2", 4.5, ""), caption("3", 8.1, "")
    found = starts(*(each for pair in zip(begins, ends, strict=True) for each in pair))
    assert found == pytest.approx([0.0, 2.06, 4.5, 6.28, 8.1], abs=0.01)
    growing = caption("1", 1.0, TEXT[:20]), caption("1", 3.0, TEXT[:20]), caption("1", 4.0, TEXT, final=True)
    assert starts(begins[0], *growing) == pytest.approx([0.0, 3.30], abs=0.01)  # behind the pause after "Herren,"


def test_single_times_are_those_of_the_end() -> None:
    """Recognisers that send finals only say when an utterance ended."""
    found, errors = cues([caption("1", 20.0, TEXT, final=True), caption("2", 25.0, f"{TEXT} {TEXT}", final=True)])
    assert found[0][0] == pytest.approx(20_000 - 1000 * 33 / 17, abs=1)  # its first line, at reading speed
    assert found[0][2].splitlines() == ["Meine Damen und Herren, ich freue", "mich sehr, heute hier zu sein."]
    assert 20_000 < found[1][0] < 25_000 and not errors


def two_languages(*captions: Caption) -> list[tuple[int, int, list[str]]]:
    """The subtitles of captions in German and Japanese."""
    out = io.StringIO()
    writer = RowsWriter(SubtitleWriter(Output("srt", out, io.StringIO(), ["de", "ja"])), 16, lambda: 0.0)
    for each in captions:
        writer.write(each)
    writer.close()
    return [
        (cue.start, cue.end, cue.plaintext.splitlines()) for cue in pysubs2.SSAFile.from_string(out.getvalue(), "srt")
    ]


def test_name_of_speaker_is_part_of_the_first_line() -> None:
    """Names before all lines made them wider than asked for."""
    said = Caption("1", 0, "de", "Guten Morgen, alle zusammen", final=True, speaker="Anna")
    out = io.StringIO()
    RowsWriter(LinesWriter(out, io.StringIO()), 16).write(said)
    assert [line.split("\t")[2] for line in out.getvalue().splitlines()] == ["Anna: Guten", "Morgen, alle", "zusammen"]
    found, _ = cues([said], 16)
    assert [text for _, _, text in found] == ["Anna: Guten", "Morgen, alle", "zusammen"]
    rows = io.StringIO()
    RowsWriter(JsonlWriter(rows), 16, named=False).write(said)
    assert [(row["speaker"], row["text"]) for row in map(json.loads, rows.getvalue().splitlines())] == [
        ("Anna", "Guten Morgen,"),
        ("Anna", "alle zusammen"),
    ]


def test_lines_of_two_languages_share_cues() -> None:
    """One after another, those of the second language would be shown for a quarter of a second each."""
    german = caption("1", 9.0, "Guten Morgen, meine Damen und Herren", final=True)
    japanese = caption("1", 9.0, "皆様、おはようございます。", final=True, language="ja")
    found = two_languages(german, japanese, caption("2", 20.0, "Ja.", final=True))
    texts = [["Guten Morgen,", "meine Damen und", "皆様、おはようご", "ざいます。"], ["Herren"], ["Ja."]]
    assert [lines for _, _, lines in found] == texts


def test_lines_come_before_their_utterance_ends() -> None:
    out = io.StringIO()
    writer = RowsWriter(SubtitleWriter(Output("srt", out, io.StringIO(), ["de", "ja"])), 16, lambda: 0.0)
    for time in (1.0, 3.0):
        writer.write(caption("1", time, "Guten Morgen, meine Damen"))
        writer.write(caption("1", time, "皆様、おはようございます。", language="ja"))
    writer.write(caption("2", 9.0, "Ja.", final=True))  # while the first one goes on
    writer.write(caption("2", 9.0, "はい。", final=True, language="ja"))
    texts = [cue.plaintext.splitlines() for cue in pysubs2.SSAFile.from_string(out.getvalue(), "srt")]
    assert texts == [["Guten Morgen,", "皆様、おはようご"]]
    writer.close()
    assert "Ja.\nはい。" in out.getvalue()


def test_language_without_lines_holds_up_a_few_utterances() -> None:
    out = io.StringIO()
    writer = RowsWriter(SubtitleWriter(Output("srt", out, io.StringIO(), ["de", "ja"])), 16, lambda: 0.0)
    for name in range(20):
        writer.write(caption(str(name), name * 3.0 + 3, f"Wort {name}", final=True))
    assert 20 - MOST_UNPAIRED - 2 <= out.getvalue().count("Wort") < 20
    writer.close()
    assert [f"Wort {name}" in out.getvalue() for name in range(20)] == [True] * 20


@pytest.mark.parametrize("languages", [[None], ["de", "ja"]])
def test_lines_of_an_utterance_that_fails_in_the_end(languages: list[str | None]) -> None:
    """Only the failure of all languages shows that it is over: its lines come before those of later utterances."""
    out, errors = io.StringIO(), io.StringIO()
    writer = RowsWriter(SubtitleWriter(Output("srt", out, errors, ["de", "ja"])), 16, lambda: 0.0)
    for time in (1.0, 3.0):
        writer.write(caption("1", time, "Guten Morgen, meine Damen"))
    for language in languages:
        writer.write(Failure("too long", None, "1", 9, language))
    for name in range(2, 6):
        for language in ("de", "ja"):
            writer.write(caption(str(name), 9.0 * name, "Ja.", final=True, language=language))
    writer.close()
    assert out.getvalue().index("Guten Morgen,") < out.getvalue().index("Ja.")
    assert "as if the stream had started again" not in errors.getvalue()


def test_final_time_before_last_partial_one() -> None:
    partials = caption("1", 0.0, ""), caption("1", 5.0, TEXT)
    found, errors = cues([*partials, caption("1", 3.0, TEXT, final=True)])
    assert [each[:2] for each in found] == [(0, 2498), (2578, 5000)] and not errors


def test_many_short_utterances_at_once() -> None:
    finals = [caption(str(name), 5.0, "Guten Morgen, meine Damen", final=True) for name in range(60)]
    found, errors = cues(finals, 16)
    assert sum(len(text.splitlines()) for _, _, text in found) == 120
    assert found[-1][1] < 5000 + 65 * SHORTEST and not errors


def test_begin_of_utterance_without_caption() -> None:
    out = io.StringIO()
    writer = RowsWriter(SubtitleWriter(Output("srt", out, io.StringIO(), ["de"])), 37, lambda: 0.0)
    writer.write(replace(caption("1", 4.0, TEXT, final=True), start=0.0))
    writer.close()
    assert [(cue.start, cue.end) for cue in pysubs2.SSAFile.from_string(out.getvalue(), "srt")] == [
        (0, 1982),
        (2062, 4000),
    ]


def test_patience_by_times_of_captions() -> None:
    kept = Kept()
    writer = RowsWriter(kept, 37, lambda: 0.0)
    writer.write(caption("1", 0.0, TEXT))
    writer.write(caption("1", 0.9, TEXT))
    assert not kept.events
    writer.write(caption("1", 1.1, "Ganz anders"))  # too late for a line that was complete at 1.0
    assert [text for _, text in kept.written] == ["Meine Damen und Herren, ich freue"]
    writer.write(Failure("bad"))
    assert kept.events[-1] == Failure("bad")


@pytest.mark.parametrize("back", [10.0, 3590.0])
def test_patience_after_times_that_start_again(back: float) -> None:
    kept = Kept()
    writer = RowsWriter(kept, 37, lambda: 0.0)
    writer.write(caption("1", 3600.0, "Ja.", final=True))
    for kept.now in (0.0, 0.5, 1.0, 1.5):
        writer.write(caption("2", 3600.0 - back + kept.now, TEXT))
    assert kept.written[1:] == [(1.0, "Meine Damen und Herren, ich freue")]


def test_lines_that_wait_at_close() -> None:
    kept = Kept()
    writer = RowsWriter(kept, 37, lambda: 0.0)
    writer.write(caption("1", 0.0, TEXT))
    writer.close()
    assert [text for _, text in kept.written] == ["Meine Damen und Herren, ich freue"]


class Loop:
    """An event loop whose timer runs when told to."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.run: Callable[[], None] = lambda: None

    def call_later(self, seconds: float, run: Callable[[], None]) -> Loop:
        self.seconds.append(seconds)
        self.run = run
        return self

    def cancel(self) -> None:
        self.run = lambda: None


def test_live_line_waits_for_no_caption(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    kept, clock = Kept(), [100.0]
    writer = RowsWriter(kept, 37, lambda: clock[0], live=True)
    writer.write(caption("1", 7.0, TEXT))
    clock[0] += 0.5
    writer.write(caption("1", 7.1, TEXT))
    assert loop.seconds == [1.0, 0.5]
    clock[0] += 0.5
    loop.run()
    assert [text for _, text in kept.written] == ["Meine Damen und Herren, ich freue"]
    assert len(loop.seconds) == 2
    kept.write = lambda event: (_ for _ in ()).throw(OSError("closed"))  # type: ignore[method-assign]
    writer.write(caption("2", 9.0, TEXT))
    clock[0] += 1
    loop.run()
    with pytest.raises(OSError, match="closed"):
        writer.write(caption("2", 10.0, TEXT))


# --- any stream


@st.composite
def streams(draw: st.DrawFn) -> list[Update]:
    """Recognised utterances, perhaps in sentences; some speak at the same time, and final times may be earlier."""
    updates = draw(recognised(draw(st.integers(1, 4)), steady=draw(st.booleans())))
    if draw(st.booleans()) and updates[0].time is not None:
        early = draw(st.lists(st.sampled_from([0.0, 0.1, 2.0]), min_size=len(updates), max_size=len(updates)))
        updates = [
            Update(each.utterance, each.seq, each.text, each.final, max(0.0, (each.time or 0.0) - back * each.final))
            for each, back in zip(updates, early, strict=True)
        ]
    if draw(st.booleans()):
        # The order of utterances at the same time: the updates of each stay in order.
        names = draw(st.permutations([each.utterance for each in updates]))
        rest = {name: iter([each for each in updates if each.utterance == name]) for name in names}
        updates = [next(rest[name]) for name in names]
    return updates


def translated(updates: Sequence[Update], *, sentences: bool) -> Iterator[Caption]:
    for each in in_sentences(updates) if sentences else updates:
        assert isinstance(each, Update)
        yield caption(each.utterance, each.time, each.text, final=each.final)


@settings(max_examples=STREAMS)
@given(streams(), st.booleans(), st.none() | st.integers(16, 40))
def test_subtitles_are_monotone(updates: list[Update], sentences: bool, width: int | None) -> None:
    captions = list(translated(updates, sentences=sentences))
    found, errors = cues(captions, width)
    times = [time for start, end, _ in found for time in (start, end)]
    assert times == sorted(times) and not errors
    assert all(end - start >= SHORTEST and len(text.splitlines()) <= MOST_LINES for start, end, text in found)
    if width is None:
        finals = [each.text.strip() for each in captions if each.final]
        assert "".join("".join(text for _, _, text in found).split()) == "".join("".join(finals).split())


@st.composite
def spoken(draw: st.DrawFn) -> list[Caption]:
    """Utterances that grow, no faster than anyone reads."""
    captions, now = list[Caption](), 0.0
    for name in range(draw(st.integers(1, 4))):
        now += draw(st.sampled_from([0.1, 0.5, 3.0]))
        words = draw(
            st.lists(st.sampled_from([*TEXT.split(), "a", "Straßenbahnhaltestellen"]), min_size=1, max_size=40)
        )
        captions.append(caption(str(name), now, ""))
        while words and len(captions) < 400:
            count = draw(st.integers(1, 6))
            text = " ".join([captions[-1].text, *words[:count]]).strip()
            now += max(0.3, (len(text) - len(captions[-1].text)) / 15) + draw(st.sampled_from([0.0, 0.2, 2.0]))
            now = round(now * 64) / 64  # sums with the patience are exact
            captions.append(caption(str(name), now, text, final=not words[count:]))
            words = words[count:]
    return captions


@settings(max_examples=STREAMS)
@given(spoken(), st.integers(24, 42))
def test_lines_of_growing_text(captions: list[Caption], width: int) -> None:
    """Every word once and in order, its line no later than its patience, and its cue when it was spoken."""
    kept = Kept()
    writer = RowsWriter(kept, width, lambda: 0.0)
    for each in captions:
        kept.now = each.time or 0.0
        writer.write(each)
    found = cues(captions, width)[0]
    assert all(before[1] <= after[0] for before, after in pairwise(found))
    spans = [(start, end, line) for start, end, text in found for line in text.splitlines()]
    texts: dict[str, str] = {}
    for (at, line), (start, _, text), event in zip(kept.written, spans, kept.events, strict=True):
        assert isinstance(event, Caption) and line == text
        name = event.utterance.partition(".")[0]
        own = [each for each in captions if each.utterance == name]
        before, texts[name] = texts.get(name, ""), f"{texts.get(name, '')} {line}".strip()
        ended = own[-1].time or 0.0
        passed = next((each.time or 0.0 for each in own if len(each.text) > len(texts[name])), ended)
        due = min(passed + PATIENCE, ended)
        assert at <= next(each.time or 0.0 for each in captions if (each.time or 0.0) >= due)
        begun = next(each.time or 0.0 for each in own if len(each.text) > len(before))
        assert (own[0].time or 0.0) - SHORTEST / 1000 - 0.001 <= start / 1000 <= begun + LATE
    assert texts == {each.utterance: each.text for each in captions if each.final}


@settings(max_examples=STREAMS)
@given(
    st.lists(st.tuples(st.lists(st.sampled_from("abcdefgh"), max_size=60), st.sampled_from([0.0, 0.4, 1.0, 2.5]))),
    st.integers(16, 30),
)
def test_no_line_waits_longer(revisions: list[tuple[list[str], float]], width: int) -> None:
    """However a text is revised, a line is shown once there has been a complete one for so long."""
    kept, now, since = Kept(), 0.0, None
    writer = RowsWriter(kept, width, lambda: 0.0)
    for words, step in revisions:
        now += step
        before = len(kept.written)
        writer.write(caption("1", now, " ".join(words)))
        waits = any(growing.reading.deadline < inf for growing in writer._open.values())
        since = None if not waits else now if since is None or len(kept.written) > before else since
        assert since is None or now - since < LONGEST


def failing(utterance: str, seq: int, language: str | None) -> Failure:
    return Failure("the model failed on it", None, utterance, seq, language)


@given(st.data())
def test_cues_of_failed_finals(data: st.DataObject) -> None:
    """Whichever finals fail, the cues are in the order of the utterances, at their times."""
    languages = ("de", "fr", "ja")
    out = io.StringIO()
    writer = RowsWriter(SubtitleWriter(Output("srt", out, io.StringIO(), languages)), 37, lambda: 0.0)
    failed: dict[str, set[str]] = {}
    for number in range(1, 12):
        name = str(number)
        failed[name] = data.draw(st.sets(st.sampled_from(languages)))
        for language in data.draw(st.permutations(languages)):
            if data.draw(st.booleans()):
                writer.write(failing(name, 0, language))  # of an earlier update
            if language in failed[name]:
                writer.write(failing(name, 1, language))
            else:
                time, text = 3.0 * number, f"{language} {number}"
                writer.write(Caption(name, 1, language, text, "", True, time + 2, start=time))
    writer.close()
    found = [(cue.start, cue.plaintext) for cue in pysubs2.SSAFile.from_string(out.getvalue(), "srt")]
    expected = [
        (3000 * int(name), "\n".join(f"{each} {name}" for each in languages if each not in gone))
        for name, gone in failed.items()
        if len(gone) < len(languages)
    ]
    assert found == expected


@given(st.data(), st.integers(16, 40))
def test_speakers_of_lines(data: st.DataObject, width: int) -> None:
    """However speakers interrupt each other, a line without a name is by the last one who was named."""
    kept, now = Kept(), 0.0
    writer = RowsWriter(kept, width, lambda: 0.0)
    names: dict[str, str] = {}
    words = TEXT.split()
    counts: dict[str, int] = {}
    for _ in range(data.draw(st.integers(2, 25))):
        now += data.draw(st.sampled_from([0.2, 1.5, 4.5]))
        utterance = data.draw(st.sampled_from("abcd"))
        if counts.get(utterance, 0) >= len(words):
            continue
        speaker = names.setdefault(utterance, data.draw(st.sampled_from(["Anna", "Ben", "Carla Sommer"])))
        counts[utterance] = min(len(words), counts.get(utterance, 0) + data.draw(st.integers(1, 6)))
        text = " ".join(words[: counts[utterance]])
        writer.write(Caption(utterance, 0, "de", text, "", counts[utterance] == len(words), now, "", speaker=speaker))
    writer.close()
    current = None
    for event in kept.events:
        assert isinstance(event, Caption) and cells(event.text) <= width
        current = next((name for name in set(names.values()) if event.text.startswith(f"{name}:")), current)
        assert current == names[event.utterance[0]]


def test_direction_of_lines() -> None:
    """That of the language, whatever the speaker's name and the words of other languages in it."""
    for language, text, mark in (
        ("ar", "Anna: مرحبا بكم جميعا", "\u200f"),
        ("he-IL", "Anna Schmidt: תודה רבה.", "\u200f"),
        ("Hebrew", "Ben: השעה 5 ב-iPhone שלי.", "\u200f"),
        ("he", "123!", "\u200f"),
        ("de", "Anna: Hallo", ""),
        ("en", "שרה: OK", "\u200e"),
        ("en", "123", ""),
        ("en", "", ""),
        ("tlh-unknown-x", "שרה: Welcome", ""),
    ):
        assert directed([(language, text)]) == [mark + text + mark]
    for form in ("srt", "vtt"):
        out = io.StringIO()
        writer = SubtitleWriter(Output(form, out, io.StringIO(), ["ar"]))
        writer.write(Caption("1", 0, "ar", "مرحبا بكم", "", True, 1.0, "", speaker="Anna"))
        writer.close()
        assert "\n\u200fAnna: مرحبا بكم\u200f\n" in out.getvalue()


def test_cue_in_both_directions() -> None:
    """Players may take the direction of the first line for all of them."""
    out = io.StringIO()
    writer = SubtitleWriter(Output("srt", out, io.StringIO(), ["he", "de"]))
    for language, text in (("he", "שלום!"), ("de", "„Hallo.“")):
        writer.write(Caption("1", 0, language, text, final=True, time=3.0))
    writer.close()
    assert out.getvalue().splitlines()[2:4] == ["\u200fשלום!\u200f", "\u200e„Hallo.“\u200e"]
