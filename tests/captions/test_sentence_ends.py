"""Where sentences end."""

from __future__ import annotations

import pytest

from redraft.captions.sentence import sentence_ends


@pytest.mark.parametrize(
    "text",
    [
        "I came.| She went.|",
        "Really?!| Yes…",
        'He said "go."| Then he went',
        "Mr. Smith and Dr. Jones met J. Doe.| It rained.|",
        "At 7:15 it was 3.5 degrees, e.g. Here.| Cold!|",
        "He came at 7 p.m. yesterday.|",
        "He came at 7 p.m.|",
        "It was No. 5.|",
        "No.| I mean it.|",
        "Am 3. Mai kam er.| Er blieb.|",
        "I was...| You know... the one.|",
        "It is not I.| We are.|",
        "See example.com for more.| Thanks",
        "我喜欢猫。|你呢？|「好。」|他",
        "と言った。|はい",
        "Mr.",
        "",
    ],
)
def test_ends(text: str) -> None:
    bare = text.replace("|", "")
    marked = [len(part) for part in text.split("|")[:-1]]
    assert list(sentence_ends(bare)) == [sum(marked[: place + 1]) for place in range(len(marked))]
