"""Audio from files and pipes, as blocks of mono samples at 16 kHz, in bounded memory.

A radio stream and a recorder that was stopped and started again write one after another into an Ogg file, and people
join MP3, FLAC and WAV files.  Each is opened by itself, as a window on the file.  A WAV file whose header says less
than the file has, as of a recorder that was killed, is opened with a header that says what is there.

A block is a one-dimensional float32 array of any length with values from -1 to 1.  Other sample rates are resampled,
and channels are mixed (`Mixer`).
"""

from __future__ import annotations

import atexit
import io
import mmap
import os
import re
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from redraft.errors import InputError, first_sentence, from_extra

#: The beginnings of files that people join.  Of FLAC with the head of the first block; of Ogg any page, with its flags.
_WAV, _FLAC = re.compile(rb"RIFF....WAVE", re.DOTALL), re.compile(rb"fLaC[\x00\x80]\x00\x00\x22")
_PAGE = re.compile(rb"OggS\x00(.)", re.DOTALL)
#: The flag of the first page of a stream.
_FIRST = 2
#: The tag at the beginning of an MP3, with its length; or its first frame: MPEG 2 in mono, other kinds, and MPEG 1 in
#: stereo differ in the bytes before the mark that says how many frames follow.
_TAG = rb"ID3[\x02-\x04]\x00[\x00-\xf0]([\x00-\x7f]{4})"
_FRAME = rb"\xff[\xe2\xe3\xea\xeb\xf2\xf3\xfa\xfb](?:.{11}|.{19}|.{34})(?:Xing|Info)\x00\x00\x00"
_MP3 = re.compile(_TAG + b"|" + _FRAME, re.DOTALL)
#: The name of a chunk, as RIFF files have them, rather than the beginning of another file.
_NAME = re.compile(rb"(?!RIFF|RF64|FORM|caff|fLaC|OggS)[A-Za-z0-9_][A-Za-z0-9_ ]{3}")


class Part:
    """A part of a file as a file, as far as libsndfile needs one.

    Args:
        data: the whole file.
        start: its first byte.
        end: the byte behind its last one.
        head: its first bytes, if they are to be read differently.
    """

    def __init__(self, data: mmap.mmap, start: int, end: int, head: bytes = b"") -> None:
        self._data, self._start, self._size, self._head = data, start, end - start, head
        self._place = 0

    def __len__(self) -> int:
        return self._size

    def tell(self) -> int:
        """Return the place of the next byte."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to a place."""
        self._place = max(0, offset + (0, self._place, self._size)[whence])
        return self._place

    def read(self, size: int, /) -> bytes:
        """Read the next bytes, at most ``size``."""
        begin = min(self._place, self._size)
        self._place = min(self._size, begin + size)
        head = self._head[begin : self._place]
        return head + self._data[self._start + begin + len(head) : self._start + self._place]


def parts(data: mmap.mmap, kind: str | None) -> list[Part]:
    """Return the recordings of a file, at least one.

    Args:
        data: the whole file.
        kind: its format, as `redraft.speech.audio.container` names it; None may be an MP3 without a tag.
    """
    starts: list[int] = []
    if kind == "FLAC" or ((tag := re.match(_TAG, data)) and data[(end := _behind(tag)) : end + 4] == b"fLaC"):
        starts = [found.start() for found in _FLAC.finditer(data)][1:]
    elif kind == "WAV":
        end = 8 + int.from_bytes(data[4:8], "little")  # what its header covers need not be searched
        starts = [found.start() for found in _WAV.finditer(data, end if 12 < end <= len(data) else 12)]
    elif kind == "Ogg":  # where a page begins a stream behind those of another one (RFC 3533, section 4)
        pages = ((page.start(), page[1][0] & _FIRST) for page in _PAGE.finditer(data))
        starts = [start for (_, before), (start, first) in pairwise(pages) if first and not before]
    elif kind in ("MP3", None):
        starts = list(_mp3(data))
    bounds = pairwise([0, *starts, len(data)])
    return [Part(data, start, end, _wav_head(data, start, end) if kind == "WAV" else b"") for start, end in bounds]


def _mp3(data: mmap.mmap) -> Iterator[int]:
    """Yield where another MP3 begins: at its tag, or at its first frame, unless that follows the tag."""
    audio = 0
    for found in _MP3.finditer(data):
        if found.start() >= audio and data[audio : found.start()].strip(b"\0"):  # neither within a tag nor behind it
            yield found.start()
        audio = max(audio, _behind(found) if found[1] else found.start())


def _behind(tag: re.Match[bytes]) -> int:
    """Return the end of a tag, whose length is written with seven bits in each byte."""
    digits: bytes = tag[1]
    return tag.end() + sum(digit << 7 * (3 - place) for place, digit in enumerate(digits))


def _wav_head(data: mmap.mmap, start: int, end: int) -> bytes:
    """Return how a WAV file begins whose header covers what follows its samples; empty if that is as it should be."""
    place, samples = start + 12, 0
    while place < end and data[start : start + 4] == b"RIFF" and _NAME.match(data, place):
        size = int.from_bytes(data[place + 4 : place + 8], "little")
        if samples and place + 8 + size > end:
            break  # no chunk
        if data[place : place + 4] == b"data":
            samples = place
        place += 8 + size + size % 2
    if not samples or place >= end:
        return b""
    whole, rest = (min(end - at - 8, 0xFFFFFFFF).to_bytes(4, "little") for at in (start, samples))
    return b"RIFF" + whole + data[start + 8 : samples + 4] + rest


#: Sample rate of every block in Hz.
RATE = 16_000
#: Seconds of audio read at a time: the maximum delay before a recogniser gets it.
BLOCK_SECONDS = 0.1

Samples: TypeAlias = NDArray[np.float32]

#: Power of the mean of channels below which they cancel each other, and above which they no longer do; as a share of
#: what it is if they have nothing in common.
_CANCELS, _AGREE = 0.1, 0.5
#: Power of a channel with sound, and how much of the power before a block counts.
_AUDIBLE, _REMEMBERED = 1e-7, 0.95

#: How many bytes behind the end of a recording are taken for no audio, whatever they are.
_REST = 4096
#: How files of audio and video begin, and their formats; raw samples are unlikely to begin like that.
_FORMATS = {
    rb"(?:RIFF|RF64)....WAVE|riff\x2e\x91\xcf\x11": "WAV",
    rb"FORM....AIF[FC]": "AIFF",
    rb"\.snd": "AU",
    rb"caff\x00\x01": "CAF",
    rb"fLaC": "FLAC",
    rb"OggS": "Ogg",
    rb"ID3": "MP3",
    rb"....ftyp": "MP4",
    rb"\x1aE\xdf\xa3": "WebM",
    rb"0&\xb2u\x8ef\xcf\x11": "ASF",
}


def container(head: bytes) -> str | None:
    """Return the file format that starts with these bytes; None if there is none."""
    return next((name for start, name in _FORMATS.items() if re.match(start, head, re.DOTALL)), None)


def library(name: str, extra: str = "listen") -> ModuleType:
    """Import an optional library.

    Raises:
        MissingExtra: it is not installed; the message names the extra that contains it.
    """
    with from_extra(extra):
        return import_module(name)


class Mixer:
    """Mixes the channels of one source.

    A microphone wired to both sides of a balanced input gives channels that cancel each other.  Where the mean has much
    less power than the channels, the loudest of them so far is taken, until they agree again.
    """

    def __init__(self) -> None:
        self._cancels = False
        #: Power of each channel so far; old blocks count less and less.
        self._power = np.zeros(0)

    def mixed(self, block: Samples) -> Samples:
        """Return the samples of a block with the shape (samples, channels) as one channel."""
        block = np.nan_to_num(block, nan=0.0, posinf=1.0, neginf=-1.0)  # which files of floats may contain
        mean: Samples = block.mean(axis=1, dtype=np.float32)
        if block.shape[1] == 1 or not len(block):
            return mean
        power = np.square(block, dtype=np.float64).mean(axis=0)
        self._power = power + (_REMEMBERED * self._power if len(self._power) else 0)
        if power.max() > _AUDIBLE:
            share = float(np.square(mean, dtype=np.float64).mean()) / (power.sum() / block.shape[1] ** 2)
            # Of channels that have nothing in common, it is 1.
            self._cancels = share < (_AGREE if self._cancels else _CANCELS)
        return np.ascontiguousarray(block[:, int(self._power.argmax())]) if self._cancels else mean


def file_blocks(path: str) -> Iterator[Samples]:
    """Read an audio file to its end: WAV, FLAC, MP3, Ogg and other formats of libsndfile.

    Recordings that were joined in one file follow each other (`redraft.speech.audio`).

    Raises:
        InputError: the file cannot be read or is not audio; or, while iterating, its audio is damaged, or more follows
            that cannot be read.
        MissingExtra: the extra ``listen`` is not installed.
    """
    soundfile = library("soundfile")
    try:
        with Path(path).open("rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                way = f"`ffmpeg -i {shlex.quote(path)} -f s16le -ac 1 -ar {RATE} - | redraft listen -` reads others"
                raise InputError(f"input file {path!r} is not a regular file: {way}")
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        recordings = parts(data, container(data[:16]))
        with soundfile.SoundFile(recordings[0]) as opened:
            if opened.samplerate != RATE:  # what is missing is said before anything is heard
                library("soxr")
    except OSError as error:
        raise InputError(f"input file {path!r} cannot be read: {error.strerror}") from error
    except (soundfile.LibsndfileError, ValueError) as error:  # of an empty file
        found = f"input file {path!r} is not audio that can be read"
        remedy = f"to which `ffmpeg -i {shlex.quote(path)} talk.wav` converts most others"
        raise InputError(f"{found}, such as WAV, FLAC, MP3 or Ogg, {remedy}: {_reason(error)}") from None

    def all_blocks() -> Iterator[Samples]:
        try:
            for part in recordings:
                part.seek(0)
                with soundfile.SoundFile(part) as opened:
                    yield from resampled(_decoded(opened), opened.samplerate)
                    rest = len(part) - part.tell()
                behind = b""
                while rest > _REST and not behind and (piece := part.read(1 << 20)):
                    behind = piece.lstrip(b"\0")  # a recorder may have filled it up
                if rest > _REST and behind and not _NAME.match(behind):  # such as a picture
                    raise InputError(
                        f"input file {path!r} goes on behind the end that its header names: {rest} bytes were not "
                        f"heard; `ffmpeg -i {shlex.quote(path)} talk.wav` may read them"
                    )
        except soundfile.LibsndfileError as error:
            raise InputError(f"input file {path!r} cannot be read to its end: {_reason(error)}") from None

    return all_blocks()


def _decoded(file: Any) -> Iterator[Samples]:
    size, mixer = max(1, round(file.samplerate * BLOCK_SECONDS)), Mixer()
    while len(read := file.read(size, dtype="float32", always_2d=True)):
        yield mixer.mixed(read)


def pcm_blocks(pipe: BinaryIO, rate: int = RATE, channels: int = 1, *, checked: bool = False) -> Iterator[Samples]:
    """Read raw audio: signed 16-bit little-endian samples, with channels interleaved.

    Args:
        rate: sample rate in Hz.
        channels: number of channels; they are mixed.
        checked: whether the caller knows that these are raw samples rather than an audio file.

    Raises:
        InputError: while iterating, the data turn out to be an audio file, or end within a sample.
        MissingExtra: the extra ``listen`` is not installed, and ``rate`` is not 16000.
    """
    return resampled(_pcm(pipe, rate, channels, checked), rate)


def _pcm(pipe: BinaryIO, rate: int, channels: int, checked: bool) -> Iterator[Samples]:
    width, mixer = 2 * channels, Mixer()
    size = max(1, round(rate * BLOCK_SECONDS)) * width
    while data := pipe.read(size):
        if not checked and (kind := container(data)):
            remedy = f"name the file, or let ffmpeg write these, with `ffmpeg -i FILE -f s16le -ac 1 -ar {RATE} -`"
            raise InputError(f"standard input must be raw 16-bit samples, not a file in {kind} format: {remedy}")
        checked = True
        whole = len(data) - len(data) % width
        samples = np.frombuffer(data[:whole], "<i2").reshape(-1, channels).astype(np.float32)
        yield mixer.mixed(samples / np.float32(32768))
        if whole < len(data):
            raise InputError(f"the audio ends in the middle of a sample: {channels} x 16 bits were expected")


def resampled(blocks: Iterator[Samples], rate: int) -> Iterator[Samples]:
    """Resample blocks from ``rate`` in Hz to 16 kHz.

    Raises:
        MissingExtra: the extra ``listen`` is not installed, and ``rate`` is not 16000.
    """
    return blocks if rate == RATE else _resampled(blocks, rate, library("soxr"))


def _resampled(blocks: Iterator[Samples], rate: int, soxr: ModuleType) -> Iterator[Samples]:
    # After Ctrl-C a thread may still hold this generator, and soxr prints a list of leaks at exit.
    stream = [soxr.ResampleStream(rate, RATE, 1, dtype="float32")]
    atexit.register(stream.clear)
    try:
        for block in blocks:
            if len(made := stream[0].resample_chunk(block)):
                yield made
        if len(made := stream[0].resample_chunk(np.zeros(0, np.float32), last=True)):
            yield made
    finally:
        atexit.unregister(stream.clear)


def at_speed(
    blocks: Iterator[Samples],
    speed: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Samples]:
    """Yield each block at the time at which it was spoken.

    Args:
        speed: how many times faster than the original; 1 is real time.
    """
    start, played = clock(), 0
    for block in blocks:
        played += len(block)
        if (wait := start + played / RATE / speed - clock()) > 0:
            sleep(wait)
        yield block


def _reason(error: Exception) -> str:
    """Return libsndfile's error message without the path at its start."""
    return first_sentence(Exception(getattr(error, "error_string", str(error))))
