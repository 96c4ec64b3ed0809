"""What a captioning tool shows if its requests are translated as utterances that grow, and if each is by itself."""

from __future__ import annotations

from itertools import islice

import pytest

from redraft.captions.talk import load_talk
from tests.serve.http.compat.captioning_tool import compare, requests


@pytest.mark.slow
def test_less_flicker() -> None:
    growing, scratch = compare("demo-tiny", "de", list(islice(requests(load_talk(), interval=0), 100)))
    assert growing.passes < 0.5 * scratch.passes
    assert growing.erasure < 0.8 * scratch.erasure
