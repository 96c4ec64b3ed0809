"""Audio that waits: nothing is lost or doubled, whoever reads it, and every place has its time."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from redraft.speech.audio import RATE
from redraft.speech.buffer import AudioBuffer


@given(st.integers(0, 100_000), st.sampled_from([2, 4]))
def test_nothing_is_lost_or_doubled(seed: int, width: int) -> None:
    rng, now = random.Random(seed), [0.0]
    buffer = AudioBuffer(width, lambda: now[0])
    sent, positions, arrived = bytearray(), list[int](), list[float]()  # of each sample, its place as it was sent
    read, begun, forgotten, lost = bytearray(), 0, 0, 0

    def put(samples: bytes, at: int) -> None:
        sent.extend(samples)
        positions.extend(range(at, at + len(samples) // width))
        arrived.extend([now[0]] * (len(samples) // width))

    for _ in range(rng.randint(1, 20)):
        now[0] += rng.choice([0.1, 0.5])
        match rng.randrange(6):
            case 0 | 1:
                samples = rng.randbytes(width * rng.randint(0, 300))
                put(samples, len(sent) // width + lost)
                buffer.add(samples)
            case 2:
                missing = rng.choice([1, 100, RATE + 77, 5 * RATE])
                put(bytes(width * min(missing, RATE)), len(sent) // width + lost)
                lost += max(0, missing - RATE)
                buffer.skip(missing)
            case 3:
                read += buffer.take(rng.randint(1, 20_000))
            case 4:
                place = rng.randint(0, buffer.added + 10)
                buffer.forget(place)
                forgotten = max(forgotten, min(place, begun + len(read) // width))
            case 5:
                begun, read = buffer.again(), bytearray()
        assert (buffer.added, buffer.first) == (len(positions), forgotten)
        assert len(buffer._audio) == width * (len(positions) - forgotten)
        assert read == sent[begun * width :][: len(read)]
    while piece := buffer.take(7_000):
        read += piece
    assert read == sent[begun * width :]
    now[0] += 1
    for place in {rng.randint(1, buffer.added) for _ in range(20 * bool(positions))}:
        assert buffer.arrival(place) == arrived[place - 1]
        assert buffer.original(place, end=True) == positions[place - 1] + 1
        assert buffer.original(place - 1) == positions[place - 1]
    assert buffer.arrival(buffer.added + 1) == now[0]
    buffer.clear()
    assert (len(buffer._audio), buffer.take(1), buffer.again(), buffer.added) == (
        0,
        b"",
        len(positions),
        len(positions),
    )


def test_arrivals_are_bounded() -> None:
    """Frames that come together count once, and old ones are forgotten."""
    now = [0.0]
    buffer = AudioBuffer(clock=lambda: now[0])
    for now[0] in range(400):
        for _ in range(100):
            buffer.add(bytes(2))
    assert len(buffer._arrivals) <= 125
    assert buffer.arrival(40_000) == 399
