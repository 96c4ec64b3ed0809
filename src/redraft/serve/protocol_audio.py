"""Messages for servers that recognise speech; part of `redraft.serve.protocol`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from redraft.serve.fields import Message, Seconds


class Audio(Message):
    """Audio follows in binary frames: signed 16-bit little-endian samples, mono.  Begins a stream of it, or resumes it.

    The utterances that are recognised in it are named ``STREAM.1``, ``STREAM.2`` and so on.
    """

    type: Literal["audio"] = "audio"
    stream: Annotated[str, Field(min_length=1, max_length=50)] = Field(description="name of the stream of audio")
    rate: Literal[16000] = Field(16000, description="samples per second")
    time: Seconds = Field(0.0, description="when the stream's first sample was spoken, in seconds")
    samples: int = Field(0, ge=0, le=2**53, description="position in the stream of the next sample that can be sent")
    utterance: int = Field(
        1, ge=1, le=2**53, description="number of the first utterance whose final text is not known to the client"
    )


class AudioEnd(Message):
    """No more audio follows in this stream; the last utterance becomes final."""

    type: Literal["audio_end"] = "audio_end"


class Listening(Message):
    """How far a stream of audio has been received and recognised; sent about every second of it.

    If the recogniser is more than five seconds behind, it is sent every second even without progress.
    """

    type: Literal["listening"] = "listening"
    stream: str
    listening: bool = Field(description="false once the stream has ended")
    received: int = Field(description="position of the sample that the server wants next")
    recognised: int = Field(description="position up to which the audio was recognised")


class Recognised(Message):
    """What the server has recognised: an update of the session as if the client had sent it.

    If a restarted server has forgotten the session, the client sends those that are unanswered as `update`.
    """

    type: Literal["recognised"] = "recognised"
    stream: str
    utterance: str
    seq: int
    text: str
    final: bool = False
    time: float | None = None
    recognised: int = Field(description="position in the stream up to which the audio was recognised")
