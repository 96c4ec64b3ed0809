"""Audio of files and pipes, as blocks at 16 kHz."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from redraft.errors import InputError, MissingExtra
from redraft.speech import audio
from redraft.speech.audio import RATE, Mixer, Samples, at_speed, container, file_blocks, pcm_blocks


def tone(rate: int, seconds: float = 2.0, channels: int = 1) -> Samples:
    """A tone of 440 Hz on the first channel, silence on the others."""
    made = np.zeros((round(rate * seconds), channels), np.float32)
    made[:, 0] = 0.5 * np.sin(2 * np.pi * 440 * np.arange(len(made)) / rate)
    return made


def frequency(samples: Samples) -> float:
    spectrum = np.abs(np.fft.rfft(samples))
    return float(spectrum.argmax()) * RATE / len(samples)


@pytest.mark.parametrize("kind", ["wav", "flac", "mp3", "ogg"])
@pytest.mark.parametrize(("rate", "channels"), [(8000, 1), (16_000, 1), (22_050, 2), (44_100, 2), (48_000, 3)])
def test_files_of_all_rates_and_channels(tmp_path: Path, kind: str, rate: int, channels: int) -> None:
    if kind == "mp3" and channels > 2:
        pytest.skip("MP3 has two channels at most")
    path = tmp_path / f"tone.{kind}"
    soundfile.write(path, tone(rate, channels=channels), rate)
    found = np.concatenate(list(file_blocks(str(path))))
    assert found.dtype == np.float32 and found.ndim == 1
    assert len(found) / RATE == pytest.approx(2.0, abs=0.1)  # MP3 pads
    assert frequency(found) == pytest.approx(440, abs=1)
    loudness = float(np.sqrt(2 * np.mean(found[RATE // 2 : RATE] ** 2)))
    if kind != "mp3":  # libsndfile's encoder of MP3 does badly with pure tones
        assert loudness == pytest.approx(0.5 / channels, rel=0.02)


def test_file_is_read_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "long.wav"
    soundfile.write(path, np.zeros(48_000 * 30, np.int16), 48_000)
    blocks = file_blocks(str(path))
    assert max(map(len, blocks)) <= 0.3 * RATE


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^input file '.*absent.wav' cannot be read: No such file or directory$"):
        file_blocks(str(tmp_path / "absent.wav"))
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        file_blocks(str(tmp_path))
    text = tmp_path / "talk.txt"
    text.write_text("Good evening.")
    with pytest.raises(InputError, match=r"talk.txt' is not audio that .* `ffmpeg -i .*: Format not recognised$"):
        file_blocks(str(text))


#: Containers, with an encoding of each: what libsndfile writes.
KINDS = {
    **{name: ("WAV", name) for name in ("PCM_16", "PCM_24", "FLOAT", "ULAW", "MS_ADPCM")},
    **{form: (form, "PCM_16") for form in ("RF64", "W64", "AIFF", "AU", "CAF", "FLAC")},
    "VORBIS": ("OGG", "VORBIS"),
    "OPUS": ("OGG", "OPUS"),
    "MP3": ("MP3", "MPEG_LAYER_III"),
}


def recording(path: Path, kind: str, seconds: float = 4.0, rate: int = RATE) -> bytes:
    form, subtype = KINDS[kind]
    noise = np.random.default_rng(0).normal(0, 0.1, round(seconds * rate)).astype(np.float32)
    soundfile.write(path, noise, rate, format=form, subtype=subtype)
    return path.read_bytes()


def heard(path: Path) -> tuple[float, str]:
    """Seconds of a file, and the first error."""
    found = 0
    try:
        for block in file_blocks(str(path)):
            found += len(block)
    except InputError as error:
        return found / RATE, str(error)
    return found / RATE, ""


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_go_on(tmp_path: Path, kind: str) -> None:
    """Two recordings in one file are both heard, whatever their lengths; or a message says what was not."""
    path = tmp_path / "joined"
    one, two = recording(path, kind), recording(path, kind, 3.0)
    path.write_bytes(one + two)
    seconds, error = heard(path)
    if kind in ("AU", "CAF", "RF64"):
        assert seconds == pytest.approx(4, abs=0.1) and "bytes were not heard" in error
    elif kind == "AIFF":
        assert "not audio that can be read" in error
    else:
        assert seconds == pytest.approx(7, abs=0.2) and not error


def test_chain_of_different_rates(tmp_path: Path) -> None:
    path = tmp_path / "chain.ogg"
    path.write_bytes(
        b"".join(recording(tmp_path / "part", kind, 2.0, rate) for kind, rate in (("VORBIS", 44_100), ("OPUS", 48_000)))
    )
    seconds, error = heard(path)
    assert seconds == pytest.approx(4, abs=0.1) and not error


def test_joined_files_with_tags(tmp_path: Path) -> None:
    """A tag begins the file that follows it; a picture in it is no audio."""
    picture = b"ID3\x04\0\0\0\0\x10\0" + b"Info\0\0\0" + bytes(2041)
    mp3, flac = (recording(tmp_path / "part", kind, 2.0) for kind in ("MP3", "FLAC"))
    for each in (mp3, flac):
        (path := tmp_path / "tagged").write_bytes(2 * (picture + each))
        seconds, error = heard(path)
        assert seconds == pytest.approx(4, abs=0.2) and not error


@pytest.mark.parametrize("kind", ["PCM_16", "PCM_24", "FLOAT", "ULAW"])
@pytest.mark.parametrize("said", [0, 8000])
def test_header_says_less(tmp_path: Path, kind: str, said: int) -> None:
    """A recorder that is killed leaves an earlier length in the header, or none."""
    data = recording(tmp_path / "talk.wav", kind)
    place = data.index(b"data") + 4
    (tmp_path / "talk.wav").write_bytes(data[:place] + said.to_bytes(4, "little") + data[place + 4 :])
    seconds, error = heard(tmp_path / "talk.wav")
    assert seconds == pytest.approx(4, abs=0.01) and not error


def test_chunks_behind_samples(tmp_path: Path) -> None:
    """They are no audio, and no reason for a message."""
    chunk = b"LIST" + (60_000).to_bytes(4, "little") + bytes(60_000)
    (tmp_path / "talk.wav").write_bytes(recording(tmp_path / "talk.wav", "PCM_16") + chunk)
    assert heard(tmp_path / "talk.wav") == (4, "")
    (tmp_path / "talk.aiff").write_bytes(recording(tmp_path / "talk.aiff", "AIFF") + b"ID3 \0\1\0\0" + bytes(65536))
    assert heard(tmp_path / "talk.aiff") == (4, "")


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_cut_off(tmp_path: Path, kind: str) -> None:
    data = recording(tmp_path / "talk", kind, 8.0)
    (tmp_path / "talk").write_bytes(data[: len(data) * 3 // 4])
    seconds, error = heard(tmp_path / "talk")
    assert bool(error) == (kind in ("CAF", "FLAC"))
    assert seconds == pytest.approx(0 if kind == "CAF" else 6, abs=1.1)  # less a page of Ogg


def test_files_without_audio(tmp_path: Path) -> None:
    data = recording(tmp_path / "talk.ogg", "VORBIS", 3.0, 48_000)
    (tmp_path / "talk.ogg").write_bytes(data[:5000])  # cut off before its audio
    assert heard(tmp_path / "talk.ogg") == (0, "")
    (tmp_path / "talk.caf").write_bytes(recording(tmp_path / "talk.caf", "CAF", 0.0) + bytes(10_000))
    assert heard(tmp_path / "talk.caf")[0] == 0 and "bytes were not heard" in heard(tmp_path / "talk.caf")[1]
    (tmp_path / "empty").touch()
    assert "is not audio that can be read" in heard(tmp_path / "empty")[1]


def test_samples_that_are_no_numbers(tmp_path: Path) -> None:
    path, samples = tmp_path / "broken.wav", tone(RATE)
    samples[:3, 0] = [np.nan, np.inf, -np.inf]
    soundfile.write(path, samples, RATE, subtype="FLOAT")
    found = np.concatenate(list(file_blocks(str(path))))
    assert found[:3].tolist() == [0, 1, -1] and np.array_equal(found[3:], samples[3:, 0])


def test_damaged_file_says_so_after_what_could_be_read(tmp_path: Path) -> None:
    path = tmp_path / "cut.flac"
    soundfile.write(path, np.random.default_rng(0).normal(0, 0.1, RATE * 20).astype(np.float32), RATE)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    path.write_bytes(data)
    found = 0
    with pytest.raises(InputError, match="cut.flac' cannot be read to its end"):  # noqa: PT012
        for block in file_blocks(str(path)):
            found += len(block)
    assert found > 5 * RATE


@pytest.mark.parametrize(("rate", "channels"), [(16_000, 1), (48_000, 2), (8000, 1)])
def test_raw_audio(rate: int, channels: int) -> None:
    pcm = (tone(rate, channels=channels) * 32767).astype("<i2").tobytes()
    found = np.concatenate(list(pcm_blocks(io.BytesIO(pcm), rate, channels)))
    assert len(found) / RATE == pytest.approx(2.0, abs=0.01)
    assert frequency(found) == pytest.approx(440, abs=1)


def loudness(blocks: Iterable[Samples]) -> float:
    return float(np.sqrt(2 * np.mean(np.square(np.concatenate(list(blocks))))))


@pytest.mark.parametrize(
    ("gains", "heard"),
    [((1, -1), 1), ((0.5, -0.6), 0.6), ((1, 0, -1), 1), ((1, 1), 1), ((1, 0), 0.5), ((1, 0.5), 0.75)],
)
def test_channels_that_cancel(tmp_path: Path, gains: tuple[float, ...], heard: float) -> None:
    sound = tone(RATE) * np.array(gains, np.float32)
    path = tmp_path / "tone.wav"
    soundfile.write(path, sound, RATE, subtype="FLOAT")
    pcm = io.BytesIO((sound * 32767).astype("<i2").tobytes())
    mixer = Mixer()
    for blocks in (
        file_blocks(str(path)),
        pcm_blocks(pcm, RATE, len(gains)),
        [mixer.mixed(block) for block in np.array_split(sound, 20)],
    ):
        assert loudness(blocks) == pytest.approx(heard / 2, rel=0.01)


def test_silence_and_agreement_after_channels_that_cancel() -> None:
    mixer, sound = Mixer(), tone(RATE, 0.1)
    noise = np.random.default_rng(0).normal(0, 1e-5, (RATE // 10, 2)).astype(np.float32)
    assert loudness([mixer.mixed(sound * np.array([1, -1], np.float32))]) > 0.4
    assert loudness([mixer.mixed(noise)]) < 1e-4
    assert loudness([mixer.mixed(sound * np.array([1, -1], np.float32))]) > 0.4
    assert np.array_equal(mixer.mixed(np.repeat(sound, 2, axis=1)), sound[:, 0])


def test_raw_audio_that_is_none() -> None:
    heads = [(b"RIFF....WAVEfmt ", "WAV"), (b"fLaC", "FLAC"), (b"OggS", "Ogg"), (b"ID3\x04", "MP3")]
    for head, kind in heads:
        with pytest.raises(InputError, match=f"raw 16-bit samples, not a file in {kind} format"):
            list(pcm_blocks(io.BytesIO(head)))
    with pytest.raises(InputError, match="the audio ends in the middle of a sample: 2 x 16 bits were expected"):
        list(pcm_blocks(io.BytesIO(b"\0" * 6), channels=2))


@pytest.mark.parametrize("speed", [1.0, 4.0])
def test_speed(speed: float) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    block = np.zeros(RATE // 10, np.float32)
    came = [now[0] for _ in at_speed(iter([block] * 10), speed, lambda: now[0], sleep)]
    assert came == pytest.approx([each / 10 / speed for each in range(1, 11)])


def test_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    with pytest.raises(MissingExtra, match=r"soundfile, which is not installed: pip install 'redraft\[listen\]'"):
        audio.file_blocks("talk.wav")


def test_program_ends_while_thread_resamples(tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    soundfile.write(path, np.zeros(48_000, np.float32), 48_000)
    program = f"""
import threading, time
from redraft.speech.audio import file_blocks
held = [file_blocks({str(path)!r})]
next(held[0])
threading.Thread(target=lambda blocks: time.sleep(60), args=(held.pop(),), daemon=True).start()
"""
    done = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, check=False, timeout=200)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"\0\0\0 ftypisom", "MP4"),
        (b"\0\0\0\x1cftypM4A ", "MP4"),
        (b"FORM\0\0\1\0AIFF", "AIFF"),
        (b".snd\0\0\0\x18", "AU"),
        (b"caff\0\1\0\0", "CAF"),
        (bytes.fromhex("3026b2758e66cf11"), "ASF"),
        (b"\x1aE\xdf\xa3", "WebM"),
    ],
)
def test_other_containers(head: bytes, name: str) -> None:
    """None of them is taken for samples."""
    data = head + np.random.default_rng(0).bytes(4000)
    assert container(data) == name
    with pytest.raises(InputError, match=f"not a file in {name} format: name the file, or let ffmpeg"):
        list(pcm_blocks(io.BytesIO(data)))


def test_samples_are_no_container() -> None:
    drawn = np.random.default_rng(1)
    for _ in range(2000):
        loud = drawn.normal(0, 3000, 1600).astype("<i2").tobytes()
        assert container(loud) is None
