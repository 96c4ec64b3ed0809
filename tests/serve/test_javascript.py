"""Modules of the pages that need no browser; reading mode is compared with Python's, on random cases."""

from __future__ import annotations

import random
import unicodedata
from pathlib import Path

import numpy as np
import pytest

from redraft import deadlines
from redraft.captions.align import seam
from redraft.captions.breaks import broken, cells
from redraft.captions.events import Caption
from redraft.captions.formats.rows import Reading
from redraft.captions.words import UNBREAKABLE
from redraft.speech.audio import RATE
from tests.serve.javascript import in_node

LINES = """
const [width, steps] = given, reading = new module.Reading(width);
return steps.map(([text, final, now]) => (text === null ? reading.due(now) : reading.read({ text, final }, now)));
"""
LAGS = """
const session = new EventTarget(), shown = [];
module.watchLag(session, (sentence) => shown.push(sentence));
for (const [type, detail] of given) session.dispatchEvent(new CustomEvent(type, { detail }));
return shown;
"""
#: Delays before reconnecting after each of some connections: none, short, long, or one with progress.
DELAYS = """
const backoff = new module.Backoff();
let now = 0;
performance.now = () => now;
return given.map((connection) => {
  if (connection) backoff.connected();
  now += connection === "long" ? 60_000 : 10;
  if (connection === "progress") backoff.reset();
  return backoff.next();
});
"""
SAME = 'return module.sameOf(given, ["de", "pt-BR", "zh-Hant", "no"]) ?? null;'
PIECES = """
const [most, finals] = given, lost = [];
const sent = [...module.pieces("restore", "finals", finals, most, (final) => lost.push(final))];
return { sent, longest: Math.max(...sent.map(module.bytesOf)), lost };
"""
#: A page's memory and its socket, which calls `sends` with each message.
PAGE = """
let socket = null, retry = null;
globalThis.location = { href: "http://127.0.0.1/" };
globalThis.window = globalThis.document = new EventTarget();
globalThis.setTimeout = (work) => (retry = work);
globalThis.WebSocket = class {
  static OPEN = 1;
  readyState = 1;
  constructor() { socket = this; }
  close() {}
  send(text) { sends(JSON.parse(text)); }
};
const remembering = (session) => {
  const memory = { session, open: new Map(), finals: new Map() };
  memory.note = (changes) => (memory.session = { ...memory.session, ...changes });
  return memory;
};
"""
#: A talk of a page, by what happens: whether the end was sent at last, and what was wrong with it on some connection.
TALK = (
    PAGE
    + """
const wrong = [], memory = remembering(null);
memory.keepOpen = (update) => memory.open.set(update.utterance, update);
memory.dropOpen = (utterance) => memory.open.delete(utterance);
memory.keepFinal = (key, final) => memory.finals.set(key, final);
let ended = false, resumed = false, number = 0;
const sends = ({ type }) => {
  const open = [...memory.open.values()];
  if (ended && type === "update") wrong.push("an update after the end");
  if (type !== "end") return;
  ended = true;
  if (open.some(({ spoken, final }) => !final && !(spoken && resumed))) wrong.push("an end before an update");
};
const session = new module.Session(memory);
const hear = (message) => socket.onmessage({ data: JSON.stringify(message) });
const begin = (known) => {
  resumed = known;
  ended = false;
  socket.onopen();
  hear({ type: "started", token: "t", session: "s", targets: ["de"], resumed, server: "a", message_bytes: 65536 });
};
session.begin({ targets: ["de"] });
begin(false);
for (const [what, name, final] of [...given, ["end"], ["resume"], ["silence"]]) {
  if (what === "say") session.send(name, "we saw", final);
  const heard = { type: what, stream: "m", utterance: `m.${name}`, seq: number++, text: "we", final };
  if (what === "recognised" && session.speaking) hear(heard);
  if (what === "speak" && !memory.session.ending) session.speaking = true;
  if (what === "silence") session.finishSpoken();
  if (what === "silence") session.speaking = false;
  if (what === "end" && !memory.session.ending) session.end();
  const made = { type: what, utterance: name, seq: 0, language: "de", text: "" };
  if (what === "final" && memory.open.get(name)?.final) hear(made);
  if (what !== "resume" && what !== "restart") continue;
  socket.onclose();
  retry();
  begin(what === "resume");
}
return [ended, wrong];
"""
)
#: Numbers of three attempts to resume a session, and of one after a crash: the browser restores the first state.
ATTEMPTS = (
    PAGE
    + """
const sent = [], sends = ({ connection }) => sent.push(connection);
let now = 1e12;
Date.now = () => (now += 1000);
const stored = { start: { targets: ["de"] }, token: "t", begun: 0, runs: 0 };
for (const drops of [2, 0]) {
  new module.Session(remembering(stored)).resume();
  socket.onopen();
  for (let drop = 0; drop < drops; drop++) {
    socket.onclose();
    retry();
    socket.onopen();
  }
}
return sent;
"""
)
#: Seconds that a page waits for two connections, one after the other: to open, for the first message, and for the next.
WAITS = (
    PAGE
    + """
const waits = [];
globalThis.setTimeout = (_, milliseconds) => waits.push(milliseconds / 1000);
for (let number = 0; number < 2; number++) {
  new module.Connection("", { open() {}, message() {}, close() {} });
  socket.onopen();
  socket.onmessage({ data: JSON.stringify({ type: "started", heartbeat: 5 }) });
}
return waits;
"""
)
#: Splits a text like the server, which refuses long ones.
OVERLAY = """
try {
  return module.optionsOf(given);
} catch (error) {
  return error.message;
}
"""
RESAMPLED = """
const [rate, pitch] = given, resampler = new module.Resampler(rate, 16000), made = [];
const input = Float32Array.from({ length: rate / 4 }, (_, n) => Math.sin((2 * Math.PI * pitch * n) / rate));
for (let place = 0; place < rate / 4; place += 128) made.push(...resampler.push(input.slice(place, place + 128)));
return made;
"""
#: Options of an overlay -> what is wrong with them.
WRONG = {
    "": "room is missing",
    "session=../../etc": "session must be the name of a session",
    "size=9999": "size must be a number from 8 to 400",
    "size=1e2": "size must be a number",
    "lines=0": "lines must be a number from 1 to 20",
    "colour=red;x:url(/)": "colour must be 3, 6 or 8 hexadecimal digits",
    "align=left": "align must be start, center, end",
    "language=<img src=x>": "language must be languages of the session",
    "language=a,b,c,d,e": "at most four",
    "font=x;color:red": "font must be names of fonts",
    "<b>=1": "<b> is not an option",
    "clear=-1": "clear must be a number from 0 to 600",
}
#: Words of many scripts, few of them, so that texts repeat themselves.
#: U+FEFF, white space in JavaScript only, is left out.
WORDS = (
    *("hund ", "auf ", "Straßenbahnhaltestelle, ", "naïve ", "a ", "\u00a0", "\t"),
    *("彼女", "が", "。", "」", "ー", "ダックｶﾞ", "か\u3099", "한국어 "),
    *("葛\U000e0100", "「", "（", "っ", "(", "«\u00a0", "\u202f!"),
    *("วันนี้", "อากาศดี", "ເຮົາ", "ໄປຕະຫຼາດ", "မြန်မာ", "မြင့်", "ខ្ញុំ", "ផ្សារ"),
    *("🦆", "🇩🇪 ", "👍🏽", "ﷺ ", "\u200b", "①", "—", "𠀋", "\u3000"),
)


def test_waits_for_a_server(tmp_path: Path) -> None:
    """They are those of the client in Python, also when a session is resumed."""
    (waits,) = in_node(tmp_path, "net/connection", WAITS, [None])
    assert waits == [deadlines.OPENED, deadlines.STARTED, 10] * 2


def test_seam(tmp_path: Path) -> None:
    drawn = random.Random(0)
    cases = [[drawn.choices("abcd", k=drawn.randrange(most)) for most in (9, 5, 12)] for _ in range(4000)]
    cases.append([["hund", "hund", "auf"], [], ["hund", "auf", "auf"]])
    assert in_node(tmp_path, "captions/reading", "return module.seam(...given);", cases) == [
        seam(*case) for case in cases
    ]


def test_cells(tmp_path: Path) -> None:
    points = map(chr, (*range(32, 0x3400), *range(0x3400, 0x1F000, 7), *range(0x1F000, 0x1FB00), 0x20000, 0x3FFFD))
    # Engines have different versions of Unicode, so that one may know more characters than the other.
    # A mark with a width has none alone; U+1171E was one until Unicode 16.
    known = [
        each for each in points if unicodedata.category(each) not in ("Cn", "Cs", "Co", "Mc") and each != "\U0001171e"
    ]
    found = in_node(tmp_path, "captions/reading", "return module.cells(given);", known)
    assert [each for each, width in zip(known, found, strict=True) if width != cells(each)] == []


def test_cells_of_several_characters(tmp_path: Path) -> None:
    known = [
        *("ที่นี่", "น้ำ", "नमस्ते", "क्षत्रिय", "हिन्दी", "বাংলা", "வணக்கம்", "ខ្ញុំ", "မြန်မာ", "ນ້ຳ", "שָׁלוֹם", "مُحَمَّدٌ"),
        *("e\u0301a\u0308", "か\u3099き", "ｶﾞ", "\u1112\u1161\u11ab한국", "a\u200bb", "ﷺ", "①"),
        *("👨‍👩‍👧 ja", "🇩🇪🇫🇷", "👍🏽", "1️⃣", "❤️", "❤", "😀😀"),
    ]
    found = in_node(tmp_path, "captions/reading", "return module.cells(given);", known)
    assert dict(zip(known, found, strict=True)) == {each: cells(each) for each in known}


#: Texts without spaces: Thai, Lao, Burmese and Khmer.
UNSPACED = (
    "วันนี้อากาศดีมากเราไปเดินเล่นที่สวนสาธารณะกันเถอะ",
    "ขอบคุณมากครับฯลฯใครๆก็ชอบน้ำแข็ง",
    "ມື້ນີ້ພວກເຮົາຈະໄປຕະຫຼາດກັບໝູ່ຫຼາຍໆຄົນ",
    "မြန်မာစကားပြောနေသည်မြင့်မြတ်သောတက္ကသိုလ်",
    "ខ្ញុំចង់ទៅផ្សារជាមួយមិត្តភក្តិខ្ញុំចង់ទៅផ្សារ",
)


def test_breaks_in_scripts_without_spaces(tmp_path: Path) -> None:
    """The places are Python's, whatever dictionaries the engine has."""
    drawn, known = random.Random(0), [UNBREAKABLE.findall(text) for text in UNSPACED]
    texts = [units[start:] for units in known for start in range(len(units))]
    mixed = ["".join(part) for units in known for part in broken(units, 8)] + [" ", "a", "1", "。"]
    texts += [UNBREAKABLE.findall("".join(drawn.choices(mixed, k=12)).strip()) for _ in range(500)]
    cases = [(units, width) for units in texts for width in (8, 16, 23)]
    found = in_node(tmp_path, "captions/reading", "return module.broken(...given);", cases)
    assert found == [broken(*case) for case in cases]


def steps_of(drawn: random.Random) -> list[tuple[str | None, bool, float]]:
    """Revisions of an utterance as text, whether it is final, and time; None only lets time pass."""
    words, steps, now = list[str](), list[tuple[str | None, bool, float]](), 0.0
    for _ in range(drawn.randrange(1, 12)):
        now += drawn.choice((0.1, 0.5, 1.0, 3.0))
        if drawn.random() < 0.3:
            steps.append((None, False, now))
            continue
        words[drawn.randrange(len(words) + 1) :] = drawn.choices(WORDS, k=drawn.randrange(8))
        steps.append(("".join(words), False, now))
    return [*steps, ("".join(words), True, now)]


def read(width: int, steps: list[tuple[str | None, bool, float]]) -> list[list[str]]:
    reading = Reading(width)
    return [
        reading.due(now) if text is None else reading.read(Caption("1", 0, "de", text, final=final), now)
        for text, final, now in steps
    ]


def test_lines(tmp_path: Path) -> None:
    drawn = random.Random(0)
    cases = [(drawn.randrange(16, 40), steps_of(drawn)) for _ in range(500)]
    assert in_node(tmp_path, "captions/reading", LINES, cases) == [read(*case) for case in cases]


def test_lag(tmp_path: Path) -> None:
    captions = [
        ("partial", {"language": "de", "lag_ms": 4000}),
        ("final", {"language": "de", "lag_ms": 7000}),
        ("partial", {"language": "ja", "lag_ms": 100}),
        ("final", {"language": "de", "lag_ms": 0, "corrected": True}),
        ("partial", {"language": "de", "lag_ms": 100}),
    ]
    able = [("stats", {"able": "this model can do little"}), *captions]
    unable = [*able[:1], ("stats", {"able": None}), *captions]
    shown, told, again = in_node(tmp_path, "pages/behind", LAGS, [captions, able, unable])
    slow = "Captions are 7 s behind the speech: choose fewer languages, a smaller model, or a machine with more cores."
    assert [*dict.fromkeys(shown)] == [*dict.fromkeys(again)] == [slow, ""]
    assert told[0] == "Captions are 7 s behind the speech: this model can do little."


@pytest.mark.parametrize("most", [1024, 4096, 65_536])
def test_restoring(tmp_path: Path, most: int) -> None:
    finals = [{"text": "\U0001f986" * length} for length in (*range(0, 240, 2), 2000)]
    (found,) = in_node(tmp_path, "net/pieces", PIECES, [[most, finals]])
    assert found["longest"] <= min(most, 16_000)
    fitting, too_long = (finals, []) if most > 8100 else (finals[:-1], finals[-1:])
    assert [each for piece in found["sent"] for each in piece.get("finals", ())] == fitting
    assert found["lost"] == too_long


def test_delays(tmp_path: Path) -> None:
    connections = ["short"] * 4 + ["long", None, "short", "progress", None]
    (waits,) = in_node(tmp_path, "net/backoff", DELAYS, [connections])
    longest = [200, 400, 800, 1600, 200, 400, 800, 200, 400]
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, longest, strict=True)), waits


def test_same_language(tmp_path: Path) -> None:
    wanted = [
        "de",
        "DE",
        "German",
        "german",
        "de-de",
        "de_DE",
        "pt",
        "pt-br",
        "zh-TW",
        "zh-hant",
        "nb",
        "fr",
        "<b>",
        "",
    ]
    found = in_node(tmp_path, "captions/languages", SAME, wanted)
    assert found == ["de"] * 6 + ["pt-BR"] * 2 + ["zh-Hant"] * 2 + ["no", None, None, None]


def test_overlay_options(tmp_path: Path) -> None:
    name = "a" * 32
    queries = [query if query.startswith("session") or not query else f"session={name}&{query}" for query in WRONG]
    found = in_node(tmp_path, "forms/overlay-options", OVERLAY, queries)
    assert all(sentence in each for each, sentence in zip(found, WRONG.values(), strict=True))


def test_resampling(tmp_path: Path) -> None:
    rates = (8_000, 22_050, 44_100, 48_000, 96_000)
    cases = [(rate, pitch) for rate in rates for pitch in (300, 3000, 6500 if rate > RATE else 1000)]
    high = [(rate, 9500) for rate in rates if rate > RATE]
    made = [np.array(each) for each in in_node(tmp_path, "speech/resample", RESAMPLED, [*cases, *high])]
    time = np.arange(RATE // 4) / RATE
    for (_, pitch), samples in zip(cases, made, strict=False):
        assert RATE // 4 - 200 <= len(samples) <= RATE // 4  # the rest waits for what follows
        assert np.abs(samples - np.sin(2 * np.pi * pitch * time)[: len(samples)])[200:].max() < 0.01
    # What 16 kHz cannot hold is left out, and does not come back as something else.
    assert all(np.abs(samples[200:]).max() < 0.01 for samples in made[len(cases) :])


def test_words_of_every_language(tmp_path: Path) -> None:
    ((tags, texts),) = in_node(
        tmp_path, "captions/words", "return [[...module.texts.keys()], [...module.texts.values()]];", [0]
    )
    assert len(tags) > 12 and tags[0] == "en"
    for own in texts:
        assert len(own) == len(texts[0]) and all(each and each == each.strip() for each in own)
        assert ["{model}" in each for each in own] == ["{model}" in each for each in texts[0]]
        assert ["…" in each for each in own] == ["…" in each for each in texts[0]]


def test_attempts_after_a_crash(tmp_path: Path) -> None:
    """The latest attempt has the highest number, or the page would lose its session to an earlier one of its own."""
    [attempts] = in_node(tmp_path, "net/session", ATTEMPTS, [None])
    assert len(attempts) == 4 and attempts == sorted(set(attempts))


def test_talk_ends_after_its_last_update(tmp_path: Path) -> None:
    """Whatever drops and restarts: a server is done once it has heard the end and owes nothing that came before."""
    chance = random.Random(0)
    whats = ["say"] * 4 + ["recognised"] * 6 + ["final"] * 3 + ["speak", "silence", "end", "resume", "restart"]
    talks = [
        [
            [chance.choice(whats), str(chance.randrange(4)), chance.random() < 0.5]
            for _ in range(chance.randrange(2, 30))
        ]
        for _ in range(500)
    ]
    found = in_node(tmp_path, "net/session", TALK, talks)
    assert [(talk, each) for talk, each in zip(talks, found, strict=True) if each != [True, []]] == []
