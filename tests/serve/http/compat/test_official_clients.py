"""The services' own clients against a server that stands in for them."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import deepl
import libretranslatepy
import openai
import pytest

from tests.serve.servers import Running
from tests.serve.talking import expected


def test_the_client_of_deepl(imitating: Running) -> None:
    with closing(deepl.Translator("key", server_url=imitating.url)) as client:
        found = client.translate_text(["we saw", "her duck"], target_lang="DE", source_lang="EN")
        assert [each.text for each in found] == [expected("we saw"), expected("her duck")]
        assert client.translate_text("we saw", target_lang="ZH-HANS").detected_source_lang == "EN"
        imitating.model.metadata = {**imitating.model.metadata, "redraft.target_languages": "de, zh"}
        assert [each.code for each in client.get_target_languages()] == ["DE", "ZH"]
        assert [each.code for each in client.get_source_languages()] == ["EN"]
        assert client.get_usage().character.limit_reached is False
        with pytest.raises(deepl.DeepLException, match="target_lang 'XX' is not known"):
            client.translate_text("we saw", target_lang="XX")


def test_the_client_of_libretranslate(imitating: Running) -> None:
    client = libretranslatepy.LibreTranslateAPI(imitating.url)
    assert client.translate("we saw", "en", "de") == expected("we saw")
    assert client.detect("we saw") == [{"confidence": 100.0, "language": "en"}]
    assert all(each.keys() == {"code", "name", "targets"} for each in client.languages())


def test_the_client_of_openai(imitating: Running) -> None:
    with openai.OpenAI(api_key="key", base_url=f"{imitating.url}/v1") as client:
        asking: dict[str, Any] = {"model": "demo/de", "messages": [{"role": "user", "content": "we saw"}]}
        assert client.chat.completions.create(**asking).choices[0].message.content == expected("we saw")
        with client.chat.completions.create(**asking, stream=True) as stream:
            pieces = [choice.delta.content or "" for chunk in stream for choice in chunk.choices]
        assert "".join(pieces) == expected("we saw")
        assert len(list(client.models.list())) >= 1
        with pytest.raises(openai.BadRequestError, match="only translates"):
            client.chat.completions.create(**asking | {"model": "any"})
