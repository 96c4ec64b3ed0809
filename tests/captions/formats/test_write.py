"""Writers: lines, JSON Lines and subtitles."""

from __future__ import annotations

import html
import io
import json
import re
from dataclasses import replace

import pysubs2
from hypothesis import given
from hypothesis import strategies as st

from redraft.captions.events import Caption, Event, Failure
from redraft.captions.formats.cues import MOST_UNPAIRED, SubtitleWriter
from redraft.captions.formats.write import JsonlWriter, LinesWriter, Output, TextWriter, failure_line


class Stream(io.StringIO):
    """A text stream that knows what would be left if the process were killed now."""

    flushed = ""

    def flush(self) -> None:
        self.flushed = self.getvalue()


def final(utterance: str, text: str, time: float | None = None, language: str = "de") -> Caption:
    return Caption(utterance, 9, language, text, final=True, time=time)


def partial(utterance: str, text: str, time: float | None = None, language: str = "de") -> Caption:
    return Caption(utterance, 1, language, text, " und so", time=time)


# --- lines


def lines(*events: Event) -> tuple[str, str]:
    out, errors = Stream(), Stream()
    writer = LinesWriter(out, errors)
    for event in events:
        writer.write(event)
        assert (out.flushed, errors.flushed) == (out.getvalue(), errors.getvalue())
    writer.close()
    return out.getvalue(), errors.getvalue()


def test_lines_output() -> None:
    events = [partial("1", ""), partial("1", "Gut"), partial("1", "Gut"), partial("1", "Guten"), final("1", "Guten")]
    written = lines(*events, partial("2", "Guten"), final("2", ""))[0].splitlines()
    assert [line.split("\t") for line in written] == [
        ["partial", "de", "Gut"],
        ["partial", "de", "Guten"],
        ["final", "de", "Guten"],
        ["partial", "de", "Guten"],
        ["final", "de", ""],
    ]


def test_several_languages_are_counted_apart() -> None:
    events = [partial("1", "ja", language="de"), partial("1", "ja", language="ja"), partial("1", "ja", language="de")]
    assert lines(*events)[0] == "partial\tde\tja\npartial\tja\tja\n"


def test_caption_is_one_line_and_moves_no_cursor() -> None:
    assert lines(final("1", "a\nb\x1b[2Jc\rd\u2028e\tf"))[0] == "final\tde\ta b [2Jc d e f\n"


def test_failures_go_to_errors_with_their_place() -> None:
    out, errors = lines(final("1", "a"), Failure("wrong\nhere", 3, "u", 4, "de"), Failure("bad"), final("2", "b"))
    assert out == "final\tde\ta\nfinal\tde\tb\n"
    assert errors == "redraft: line 3, utterance u, de: wrong here\nredraft: bad\n"
    assert failure_line(Failure("x", language="ja")) == "redraft: ja: x"


def test_text_output() -> None:
    events: list[Event] = [
        *(partial("1", "Gut"), final("1", "Gut\tso"), Failure("bad"), final("1", "はい", language="ja"))
    ]
    for languages, text in ((["de", "ja"], "de: Gut so\nja: はい\n"), (["de"], "Gut so\nはい\n")):
        out = Stream()
        writer = TextWriter(out, languages)
        for event in events:
            writer.write(event)
            assert out.flushed == out.getvalue()
        writer.close()
        assert out.getvalue() == text


# --- JSON Lines


def test_jsonl_has_type_and_fields_that_are_not_empty() -> None:
    out = Stream()
    writer = JsonlWriter(out)
    caption = Caption("7", 2, "ja", "今日は\n", "いい", False, 1.5, "today")
    for event in (caption, final("7", "x"), Failure("no", 3)):
        writer.write(event)
        assert out.flushed == out.getvalue()
    first, second, third = map(json.loads, out.getvalue().splitlines())
    assert first.pop("type") == "partial" and Caption(**first) == caption
    assert second == {"type": "final", "utterance": "7", "seq": 9, "language": "de", "text": "x", "source": ""}
    assert third.pop("type") == "error" and Failure(**third) == Failure("no", 3)
    assert "今日は" in out.getvalue()


# --- subtitles


def subtitles(form: str, *events: Event, languages: tuple[str, ...] = ("de",)) -> tuple[str, str]:
    out, errors = Stream(), Stream()
    writer = SubtitleWriter(Output(form, out, errors, languages))
    for event in events:
        writer.write(event)
        assert out.flushed == out.getvalue()
    writer.close()
    return out.getvalue(), errors.getvalue()


def spans(text: str, form: str = "srt") -> list[tuple[int, int]]:
    return [(cue.start, cue.end) for cue in pysubs2.SSAFile.from_string(text, form)]


def test_srt_lasts_from_first_update_to_final_one() -> None:
    events = [
        replace(partial("1", "Guten", 2.0), start=1.2),
        replace(final("1", "Guten Abend", 3.4), start=1.2),
        final("2", "Ja", 9.5),
    ]
    assert subtitles("srt", *events)[0] == (
        "1\n00:00:01,200 --> 00:00:03,400\nGuten Abend\n\n2\n00:00:08,500 --> 00:00:09,500\nJa\n\n"
    )


def test_utterance_may_begin_before_its_first_caption() -> None:
    assert spans(subtitles("srt", replace(final("1", "Guten Abend", 3.4), start=0.5))[0]) == [(500, 3400)]


def test_vtt_has_one_header_and_escapes_markup() -> None:
    text, _ = subtitles("vtt", final("1", "a < b & c --> d", 1.0), final("2", "e", 5.0))
    assert text == (
        "WEBVTT\n\n1\n00:00:00.000 --> 00:00:01.000\na &lt; b &amp; c --&gt; d\n\n"
        "2\n00:00:04.000 --> 00:00:05.000\ne\n\n"
    )
    assert subtitles("vtt")[0] == "WEBVTT\n\n"


def test_without_times_clock_runs_at_reading_speed() -> None:
    text, errors = subtitles("srt", final("1", "x" * 30), final("2", "y"), final("3", "字" * 30))
    assert spans(text) == [(0, 1765), (1765, 2765), (2765, 6294)] and not errors


def test_cues_never_overlap_nor_end_before_they_begin() -> None:
    times = ("1", 2, 8), ("2", 7, 9), ("3", 1, 1), ("4", 30, 20)
    events = [replace(final(name, "a", time), start=start) for name, start, time in times]
    assert spans(subtitles("srt", *events)[0]) == [(2000, 8000), (8000, 9000), (30000, 31000)]


@given(st.lists(st.tuples(st.text(max_size=40), st.none() | st.floats(), st.none() | st.floats()), max_size=6))
def test_any_times_give_ordered_cues_and_keep_every_text(cues: list[tuple[str, float | None, float | None]]) -> None:
    for form in ("srt", "vtt"):
        events: list[Event] = []
        for name, (text, first, last) in enumerate(cues):
            events += [partial(str(name), "", first), final(str(name), text, last)]
        written = subtitles(form, *events)[0]
        stamps = re.findall(r"^(\S+) --> (\S+)$", written, re.MULTILINE)
        times = [stamp for pair in stamps for stamp in pair]
        shown = sum(bool(_plain(text)) for text, _, _ in cues)
        assert times == sorted(times) and shown / 2 <= len(stamps)
        found = html.unescape(written) if form == "vtt" else written
        for text, _, _ in cues:
            assert _plain(text) in _plain(found.replace("\u2060", ""))


def _plain(text: str) -> str:
    """Without what writers turn into spaces, and without the joiner that they add."""
    return "".join(text.replace("\u2060", "").split()).translate(dict.fromkeys([*range(32), *range(127, 160)]))


def test_cue_has_line_for_every_language_in_order() -> None:
    german, japanese = final("1", "Guten Abend", 2.0), final("1", "こんばんは", 2.0, "ja")
    text, _ = subtitles("srt", japanese, german, languages=("de", "ja"))
    assert text.splitlines()[2:4] == ["Guten Abend", "こんばんは"]


def test_language_that_never_comes_holds_nothing_back() -> None:
    events: list[Event] = [
        final("1", "eins"),
        Failure("too long", language="ja"),
        final("2", "zwei"),
        final("2", "二", None, "ja"),
    ]
    text, errors = subtitles("srt", *events, languages=("de", "ja"))
    assert text.split("\n\n")[:-1] == [
        "1\n00:00:00,000 --> 00:00:01,000\neins",
        "2\n00:00:01,000 --> 00:00:02,000\nzwei\n二",
    ]
    assert errors == "redraft: ja: too long\n"
    assert subtitles("srt", final("1", "eins"), languages=("de", "ja"))[0].endswith("eins\n\n")


def test_utterances_in_order() -> None:
    """A language that finishes later, or never, changes neither the order nor the cues."""
    out = Stream()
    writer = SubtitleWriter(Output("srt", out, io.StringIO(), ("de", "ja")))
    events: tuple[tuple[Event, int], ...] = (
        (final("1", "eins"), 0),
        (final("2", "zwei"), 0),
        (final("2", "二", None, "ja"), 0),
        (Failure("no", None, "1", 9, "ja"), 0),
        (final("4", "vier"), 0),
        (final("1", "一", None, "ja"), 1),  # a cue waits for the next one
        *((final(str(number), "x"), 1) for number in range(5, 4 + MOST_UNPAIRED)),
        (final("4", "四", None, "ja"), 2),
        (final("x", "x"), 2),
        (final("y", "y"), 3),  # too many wait for Japanese
    )
    for event, cues in events:
        writer.write(event)
        assert out.flushed.count("-->") == cues, event
    writer.close()
    texts = [cue.splitlines()[2:] for cue in out.getvalue().split("\n\n")[:4]]
    assert texts == [["eins", "一"], ["zwei", "二"], ["vier", "四"], ["x"]]


def test_next_utterances_after_too_many_wait() -> None:
    out = Stream()
    writer = SubtitleWriter(Output("srt", out, io.StringIO(), ("de", "ja")))
    for number in range(MOST_UNPAIRED + 1):
        writer.write(final(str(number), f"de {number}"))
        if number in (1, 2):
            writer.write(final(str(number), f"ja {number}", None, "ja"))
    assert [cue.splitlines()[2:] for cue in out.getvalue().split("\n\n")[:-1]] == [
        ["de 0"],
        ["de 1", "ja 1"],
    ]


def test_cue_is_on_disk_as_soon_as_the_next_one_is_known() -> None:
    out = Stream()
    writer = SubtitleWriter(Output("srt", out, io.StringIO(), ("de",)))
    for text in ("eins", "zwei"):
        writer.write(final(text, text))
    assert out.flushed.endswith("eins\n\n")


def test_utterance_without_text_has_no_cue() -> None:
    assert spans(subtitles("srt", final("1", " \n"), final("2", "b"))[0]) == [(0, 1000)]


def test_text_that_looks_like_tags_stays_text() -> None:
    tricky = r"{\p1}C:\New\host {x} <i>"
    text, _ = subtitles("srt", final("1", tricky))
    assert text.replace("\u2060", "").splitlines()[2:] == [tricky, ""]


def test_times_since_1970_are_reported_once_and_estimated() -> None:
    text, errors = subtitles("srt", final("1", "a", 1.7e9), final("2", "b", 1.7e9 + 2))
    assert spans(text) == [(0, 1000), (1000, 2000)]
    assert errors.count("time must be seconds from the start of the stream, under 100 hours, not 1.7e+09") == 1


def test_clock_that_starts_again() -> None:
    """Its cues are late, so short ones are shown together."""
    events = [final("1", "a", 70), final("2", "b", 15), final("3", "c", 1), final("4", "d", 2)]
    assert subtitles("srt", *events) == (
        "1\n00:01:09,000 --> 00:01:10,000\na\nb\n\n2\n00:01:10,000 --> 00:01:11,000\nc\nd\n\n",
        "",
    )


def test_late_cues_catch_up() -> None:
    events = [
        each
        for name in range(20)
        for each in (partial(f"{name}", "a", name / 2), final(f"{name}", "ab", name / 2 + 0.3))
    ]
    found = spans(subtitles("srt", *events)[0])
    assert found == [(number * 1000, number * 1000 + 1000) for number in range(len(found))] and len(found) in (10, 11)


def test_times_in_order_are_no_complaint_and_others_are() -> None:
    interleaved: list[Event] = [partial("1", "a", 2), partial("2", "b", 7), final("1", "a", 8), final("2", "b", 9)]
    cases: tuple[tuple[list[Event], bool], ...] = (
        (interleaved, False),
        ([partial("1", "a", 30), final("1", "a", 20)], False),
        ([final("2", "a", 9.5), final("1", "b", 1)], False),
        ([final("1", "a", 400_000)], True),
        ([final("1", "a", 0.1)], False),
    )
    for events, complained in cases:
        writer = SubtitleWriter(Output("srt", io.StringIO(), io.StringIO(), ["de"]))
        for event in events:
            writer.write(event)
        assert writer.whole is not complained
