"""The page's microphone, in a real browser with a file in its place."""

from __future__ import annotations

import math
import re
import wave
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.cli.served import served
from tests.serve.browsers import CHROMIUM, SANDBOX, chromium, expect, final, finals, session_of, until
from tests.serve.conftest import DESKTOP
from tests.serve.hearing import SENTENCE, command
from tests.serve.servers import Running, running
from tests.speech.recognisers import dickens
from tests.waiting import eventually

PHONE = {"width": 360, "height": 740}
#: Keeps what the page has got of the microphone, and what it is to be refused.
WATCHED = """
window.tracks = [];
const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
navigator.mediaDevices.getUserMedia = async (wanted) => {
  if (window.refusal) throw new DOMException("no", window.refusal);
  const stream = await open(wanted);
  window.tracks.push(...stream.getTracks());
  return stream;
};
"""


def arguments(recording: Path) -> list[str]:
    """Those of a browser for which a recording is what the microphone hears."""
    return ["--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={recording}"]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One whose microphone hums for ever."""
    path = tmp_path_factory.mktemp("microphone") / "hum.wav"
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(48_000)
        file.writeframes((8000 * np.sin(np.arange(48_000) * 2 * math.pi * 200 / 48_000)).astype("<i2").tobytes())
    with chromium(*arguments(path)) as found:
        yield found


@pytest.fixture
def server() -> Iterator[Running]:
    with running(busy=1.0, recogniser="moonshine", listeners=1) as found:
        found.hub.recognisers.command = command()
        yield found


@pytest.fixture
def speaker(visit: Callable[..., Any]) -> Callable[..., Any]:
    """Opens the page, ready to listen."""

    def open_page(**options: Any) -> Any:
        page = visit(script=WATCHED, permissions=["microphone"], **options)
        page.get_by_text("Speak", exact=True).click()
        return page

    return open_page


def microphone(page: Any, state: str) -> None:
    """Wait until the page says how the microphone is."""
    words = {
        "off": "Microphone off",
        "listening": "Listening",
        "paused": "Microphone paused",
        "denied": "Microphone not allowed",
        "error": "Microphone stopped",
    }
    expect(page.locator("#microphone span")).to_have_text(words[state])
    expect(page.locator("#microphone")).to_have_attribute("data-state", state)
    expect(page.locator("#microphone")).to_be_visible()


def is_released(page: Any) -> bool:
    return bool(page.evaluate("tracks.length > 0 && tracks.every((track) => track.readyState === 'ended')"))


def lost(server: Running) -> float:
    """Seconds of audio that were lost."""
    (line,) = (
        each for each in server.ask("/metrics").text.splitlines() if each.startswith("redraft_lost_audio_seconds_total")
    )
    return float(line.split()[1])


def wait_for(page: Any, number: int) -> None:
    """Wait for so many finals in German."""
    until(page, f"document.querySelectorAll('{final('de')}').length >= {number}")


def wait_until_recognised(page: Any, server: Running) -> None:
    """Wait until the recogniser has ended, and everything that it has recognised is translated."""
    eventually(lambda: server.hub.recognisers.taken == 0)
    until(page, "sessionStorage.getItem('redraft.open') === '{}'")
    expect(page.locator(".cell:not(.final, .source)")).to_have_count(0)


def test_slow_recogniser_is_shown(server: Running, speaker: Callable[..., Any], tmp_path: Path) -> None:
    stuck = tmp_path / "stuck"
    stuck.touch()
    server.hub.recognisers.command = command("--slow", str(stuck))
    page = speaker()
    page.click("#listen")
    line = re.compile(
        r"^The recogniser is \d s behind the speech: choose a smaller model or a machine with more cores\.$"
    )
    expect(page.locator("#notice")).to_have_text(line, timeout=20_000)
    stuck.unlink()
    wait_for(page, 2)
    expect(page.locator("#notice")).to_have_text("")
    page.click("#listen")
    wait_until_recognised(page, server)


def test_microphone(server: Running, speaker: Callable[..., Any]) -> None:
    page = speaker()
    page.check("[name=recogniser][value=browser]")
    expect(page.locator("#own-hint")).to_contain_text("Some browsers send the audio to their vendor")
    expect(page.locator("#server-hint")).not_to_be_visible()
    page.reload()
    page.get_by_text("Speak", exact=True).click()
    microphone(page, "off")
    assert page.is_checked("[name=recogniser][value=server]")
    expect(page.locator("#own-hint")).not_to_be_visible()
    expect(page.locator("#server-hint")).to_have_text(
        "The audio goes to this server, which recognises it with moonshine:tiny-en and does not keep it."
    )
    page.click("#listen")
    microphone(page, "listening")
    expect(page.locator("#listen")).to_have_text("Stop listening")
    until(page, "document.getElementById('level').value > 0.2")
    wait_for(page, 2)
    assert page.locator(".cell.source").all_inner_texts()[:2] == [SENTENCE, SENTENCE]
    assert not is_released(page)
    page.click("#listen")
    microphone(page, "off")
    assert is_released(page)
    wait_until_recognised(page, server)
    assert lost(server) == 0
    count = len(finals(page, "de"))
    page.click("#listen")  # and once more, as another stream
    microphone(page, "listening")
    wait_for(page, count + 1)
    page.click("text=End session")
    expect(page.locator("#state")).to_have_text("Ended")
    microphone(page, "off")
    assert is_released(page) and page.locator(".cell:not(.final, .source)").count() == 0


def test_drop(server: Running, speaker: Callable[..., Any]) -> None:
    page = speaker()
    page.click("#listen")
    wait_for(page, 1)
    session = server.hub.sessions[str(session_of(page)["name"])]
    owner = session.broadcast.owner
    assert owner is not None
    server.call(partial(owner.close, 1012, "dropped"))
    eventually(lambda: session.broadcast.owner is not owner)
    wait_for(page, len(finals(page, "de")) + 2)
    page.click("#listen")
    wait_until_recognised(page, server)
    names = page.locator(".utterance").evaluate_all("(rows) => rows.map((row) => row.dataset.utterance)")
    assert names == [f"1.{number}" for number in range(1, len(names) + 1)]
    assert lost(server) == 0
    times = [each.time or 0.0 for each in session.transcript.finals if each.language == "de"]
    assert times[:-1] == pytest.approx([times[0] + 2.0 * number for number in range(len(times) - 1)])


def test_forgotten_utterance(server: Running, speaker: Callable[..., Any]) -> None:
    page = speaker()
    page.click("#listen")
    wait_for(page, 1)
    session = server.hub.sessions[str(session_of(page)["name"])]
    server.forget(session)
    wait_for(page, 4)
    page.click("#listen")
    wait_until_recognised(page, server)
    assert set(page.locator(".cell.source").all_inner_texts()[:4]) == {SENTENCE}
    again = server.hub.sessions[str(session_of(page)["name"])]
    assert again is not session and lost(server) == 0
    kept = [each.source for each in again.transcript.finals if each.language == "de"]
    assert kept[:4] == [SENTENCE] * 4


def test_reload_while_speaking(server: Running, speaker: Callable[..., Any]) -> None:
    page = speaker()
    page.click("#listen")
    wait_for(page, 1)
    until(page, "document.querySelector('.cell:not(.final, .source)')")
    page.reload()
    expect(page.locator("#state")).to_have_text("Live")
    wait_for(page, 2)
    wait_until_recognised(page, server)
    expect(page.locator("#microphone")).not_to_be_visible()


def test_no_microphone(speaker: Callable[..., Any], server: Running) -> None:
    page = speaker()
    for refusal, state, sentence in (
        ("NotAllowedError", "denied", "The browser does not allow this page to use the microphone."),
        ("NotFoundError", "error", "No microphone was found."),
        ("NotReadableError", "error", "The microphone cannot be used. Perhaps another program is using it."),
        ("AbortError", "error", "The microphone cannot be opened: no"),
    ):
        page.evaluate(f"window.refusal = '{refusal}'")
        page.click("#listen")
        expect(page.locator("#problem")).to_contain_text(sentence)
        microphone(page, state)
        expect(page.locator("#listen")).to_have_text("Listen")
    page.evaluate("window.refusal = ''")
    page.click("#listen")
    microphone(page, "listening")
    expect(page.locator("#problem")).not_to_be_visible()
    wait_for(page, 1)
    page.click("#listen")
    page.evaluate("Object.defineProperty(navigator, 'mediaDevices', { value: undefined })")  # an insecure page
    page.click("#listen")
    microphone(page, "error")
    expect(page.locator("#problem")).to_contain_text("only on https pages and on the server's own machine")


def test_paused_and_unplugged(server: Running, speaker: Callable[..., Any]) -> None:
    page = speaker()
    expect(page.locator("#mute")).not_to_be_visible()
    page.click("#listen")
    wait_for(page, 1)
    page.click("#mute")
    microphone(page, "paused")
    assert page.evaluate("tracks[0].enabled") is False
    expect(page.locator("#mute")).to_have_text("Resume")
    page.click("#mute")
    microphone(page, "listening")
    until(page, "document.getElementById('level').value > 0.2")
    page.evaluate("tracks[0].dispatchEvent(new Event('ended'))")
    microphone(page, "error")
    expect(page.locator("#problem")).to_contain_text("The microphone has been disconnected.")
    assert is_released(page)
    until(page, "document.querySelectorAll('.cell:not(.final, .source)').length === 0")


def test_suspended_audio(server: Running, speaker: Callable[..., Any]) -> None:
    page = speaker()
    context = "class extends Context { constructor() { super(); window.audio = this; } }"
    page.evaluate(f"((Context) => {{ window.AudioContext = {context}; }})(AudioContext)")
    page.click("#listen")
    wait_for(page, 1)
    page.evaluate("void audio.suspend()")
    microphone(page, "paused")
    expect(page.locator("#problem")).to_contain_text("The browser has paused the microphone.")
    page.wait_for_timeout(2500)
    count = len(finals(page, "de"))
    page.evaluate("void audio.resume()")  # a promise that is kept once the device plays
    microphone(page, "listening")
    wait_for(page, count + 2)
    expect(page.locator("#problem")).to_contain_text("seconds of audio were lost on the way")
    assert 1 < lost(server) < 20


def test_busy_page(server: Running, speaker: Callable[..., Any]) -> None:
    page = speaker()
    page.click("#listen")
    wait_for(page, 1)
    page.evaluate("(() => { const end = performance.now() + 2500; while (performance.now() < end); })()")
    count = len(finals(page, "de"))
    wait_for(page, count + 2)
    expect(page.locator("#problem")).not_to_be_visible()
    assert lost(server) == 0


def test_recogniser_dies(server: Running, speaker: Callable[..., Any]) -> None:
    server.hub.recognisers.command = command("--dies-after", "2.7")
    page = speaker()
    page.click("#listen")
    microphone(page, "error")
    expect(page.locator("#problem")).to_contain_text(
        "RuntimeError: out of memory, twice within 10 s of audio", ignore_case=True
    )
    assert is_released(page)
    until(page, "document.querySelectorAll('.cell:not(.final, .source)').length === 0")
    assert page.locator(".cell.source").all_inner_texts()[:2] == [SENTENCE, SENTENCE]


def test_when_all_places_are_taken(server: Running, speaker: Callable[..., Any]) -> None:
    with server.socket() as socket:
        socket.start("de")
        socket.say("audio", stream="1")
        socket.until("listening")
        page = speaker()
        page.click("#listen")
        microphone(page, "error")
        expect(page.locator("#problem")).to_contain_text("places for speech recognition on this server are taken")
        assert is_released(page)


def test_phone(server: Running, speaker: Callable[..., Any]) -> None:
    page = speaker(viewport=PHONE, has_touch=True, is_mobile=True)
    page.click("#listen")
    microphone(page, "listening")
    wait_for(page, 1)
    pill = page.locator("#microphone")
    for scrolled in ("scrollTo(0, 0)", "scrollTo(0, document.body.scrollHeight)"):
        page.evaluate(scrolled)
        box = pill.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= PHONE["height"]
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"]
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page.click("text=Captions only")
    expect(pill).to_be_visible()
    expect(page.locator("#theme")).not_to_be_visible()
    page.click("text=Show controls")
    page.click("#listen")
    page.click("text=Captions only")
    expect(pill).not_to_be_visible()
    assert page.locator("header").bounding_box()["height"] <= 2, "its heading stays for screen readers"


@pytest.mark.slow
def test_spoken_talk(browser: Any, tmp_path: Path) -> None:
    audio, rate = soundfile.read(dickens(tmp_path / "start.wav", seconds=5.2))
    # Silence until the page listens, and afterwards until it complains.
    audio = np.concatenate([np.zeros(2 * rate), audio, np.zeros(9 * rate)])
    soundfile.write(tmp_path / "talk.wav", audio, rate, "PCM_16")
    with served("--model", "demo", "--recogniser", "moonshine", "--port", "0") as (_, port):
        own = browser.browser_type.launch(executable_path=CHROMIUM, args=[*SANDBOX, *arguments(tmp_path / "talk.wav")])
        page = own.new_context(viewport=DESKTOP, permissions=["microphone"]).new_page()
        page.goto(f"http://127.0.0.1:{port}")
        page.get_by_text("Speak", exact=True).click()
        page.click("#listen")
        microphone(page, "listening")
        # Chromium's fake microphone leaves out samples where the machine is busy, but it says everything again.
        said = page.locator(".utterance", has_text="worst of times").locator(".cell.final[lang=de]").first
        expect(said).to_contain_text("Zeit", timeout=60_000)
        wait_for(page, 2)
        assert all(finals(page, "de"))
        until(page, "document.querySelector('#microphone span').textContent === 'No sound from the microphone'")
        page.click("#listen")
        microphone(page, "off")
        own.close()
