"""The recordings in one audio file: libsndfile reads the first one alone, and no further than its header says.

A radio stream and a recorder that was stopped and started again write one after another into an Ogg file, and people
join MP3, FLAC and WAV files.  Each is opened by itself, as a window on the file.  A WAV file whose header says less
than the file has, as of a recorder that was killed, is opened with a header that says what is there.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from mmap import mmap

#: The beginning of a FLAC file: its mark and the head of its first block.
_FLAC = re.compile(rb"fLaC[\x00\x80]\x00\x00\x22")
#: The tag at the beginning of an MP3, with its length; and the mark in its first frame, which says how many follow.
_TAG = re.compile(rb"ID3[\x02-\x04]\x00[\x00-\xf0]([\x00-\x7f]{4})")
_FIRST_FRAME = re.compile(rb"Xing\x00\x00\x00|Info\x00\x00\x00")
#: Bytes between the beginning of a frame and that mark: MPEG 1 in stereo, its other kinds, and MPEG 2 in mono.
_BEFORE_MARK = (36, 21, 13)
#: Bytes of the head of a page of Ogg, and its flag for the first page of a stream.
_PAGE, _FIRST_PAGE = 27, 2
#: The name of a chunk of a RIFF file.
_NAME = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9_ ]{3}")


class Part:
    """A part of a file as a file, as far as libsndfile needs one.

    Args:
        data: the whole file.
        start: its first byte.
        end: the byte behind its last one.
        head: its first bytes, if they are to be read differently.
    """

    def __init__(self, data: mmap, start: int, end: int, head: bytes = b"") -> None:
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


def is_chunk(head: bytes) -> bool:
    """Whether a chunk of a file of chunks begins with these bytes, rather than another file."""
    return _NAME.match(head) is not None and head[:4] not in (b"RIFF", b"RF64", b"FORM", b"caff", b"fLaC", b"OggS")


def parts(data: mmap, kind: str | None) -> list[Part]:
    """Return the recordings of a file, at least one.

    Args:
        data: the whole file.
        kind: its format, as `redraft.speech.audio.container` names it; None may be an MP3 without a tag.
    """
    if kind == "WAV" and data[:4] == b"RIFF":
        return list(_wav(data))
    if (tag := _TAG.match(data)) and data[(end := tag.end() + _length(tag[1])) : end + 4] == b"fLaC":
        kind = "FLAC"
    begins = {"Ogg": _ogg, "FLAC": _flac, "MP3": _mp3, None: _mp3}.get(kind)
    starts = [0, *(begins(data) if begins else ())]
    return [Part(data, start, end) for start, end in zip(starts, [*starts[1:], len(data)], strict=True)]


def _ogg(data: mmap) -> Iterator[int]:
    """Yield where a page begins a stream behind those of another one (RFC 3533, section 4)."""
    place, headers = 0, True
    while (place := data.find(b"OggS", place)) >= 0 and place + _PAGE < len(data):
        first = bool(data[place + 5] & _FIRST_PAGE)
        if first and not headers:
            yield place
        headers = first
        segments = data[place + _PAGE - 1]
        place += _PAGE + segments + sum(data[place + _PAGE : place + _PAGE + segments])


def _flac(data: mmap) -> Iterator[int]:
    """Yield where another FLAC file begins; the first one may follow a tag."""
    yield from [found.start() for found in _FLAC.finditer(data)][1:]


def _mp3(data: mmap) -> Iterator[int]:
    """Yield where another MP3 begins: at its tag, or at its first frame, unless that follows the tag."""
    tags = [(found.start(), found.end() + _length(found[1])) for found in _TAG.finditer(data)]
    frames = [(begin, begin) for found in _FIRST_FRAME.finditer(data) if (begin := _frame(data, found.start())) >= 0]
    audio = 0
    for begin, end in sorted([*tags, *frames]):
        if begin < audio or not data[audio:begin].strip(b"\0"):  # within a tag, or at the beginning of what it is of
            audio = max(audio, end)
            continue
        yield begin
        audio = end


def _length(digits: bytes) -> int:
    """Return a number that is written with seven bits in each byte."""
    return sum(digit << 7 * (3 - place) for place, digit in enumerate(digits))


def _frame(data: mmap, mark: int) -> int:
    """Return where the frame with a mark begins; -1 if none does."""
    for before in _BEFORE_MARK:
        begin = mark - before
        if begin >= 0 and data[begin] == 0xFF and data[begin + 1] & 0xE6 == 0xE2:  # layer III
            return begin
    return -1


def _wav(data: mmap) -> Iterator[Part]:
    """Yield the WAV files of a file, the last with a header that covers what follows its samples."""
    start = 0
    while start < len(data):
        place, samples = start + 12, -1
        while _NAME.match(data, place) and data[place : place + 4] != b"RIFF":
            size = int.from_bytes(data[place + 4 : place + 8], "little")
            if samples >= 0 and place + 8 + size > len(data):
                break  # no chunk
            if data[place : place + 4] == b"data":
                samples = place
            place += 8 + size + size % 2
        if samples < 0 or place >= len(data) or data[place : place + 4] == b"RIFF":
            yield Part(data, start, min(place, len(data)) if samples >= 0 else len(data))
            start = place if samples >= 0 else len(data)
            continue
        whole, rest = (min(len(data) - at - 8, 0xFFFFFFFF).to_bytes(4, "little") for at in (start, samples))
        yield Part(data, start, len(data), b"RIFF" + whole + data[start + 8 : samples + 4] + rest)
        start = len(data)
