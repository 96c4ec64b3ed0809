"""Prompts of translation models, held against the texts that their publishers give."""

from __future__ import annotations

import pytest

from redraft.captions import prompt
from redraft.captions.languages import parse_language
from redraft.captions.prompt import Prompter, Request, choose_template
from redraft.errors import OptionError
from redraft.models.hub import CATALOGUE

#: The turns of a Hunyuan model, in short: no system role, the answer follows at once.
HUNYUAN = (
    "{% for m in messages %}{% if m.role == 'user' %}<U>{{ m.content }}<A>{% else %}{{ m.content }}<E>{% endif %}"
    "{% endfor %}"
)
HY_MT2 = {"general.name": "Hy-MT2-1.8B", "tokenizer.chat_template": HUNYUAN}
HY_MT15 = {"general.name": "HY-MT1.5-1.8B", "tokenizer.chat_template": HUNYUAN}
TRANSLATEGEMMA = {"general.name": "Translategemma 4b It", "general.architecture": "gemma3"}

PLAIN = Request("The hull is dry.")
TERMS = Request("The hull is dry.", (), (("hull", "Rumpf"), ("keel", "Kiel")))
BACKGROUND = Request("The hull is dry.", (("Good morning.", "Guten Morgen."), ("Look.", "Schaut.")))


def rendered(metadata: dict[str, str], request: Request, source: str = "en", target: str = "de") -> str:
    prompter = Prompter(metadata, parse_language(source), parse_language(target))
    return "".join(segment.text for segment in prompter.segments(request))


@pytest.mark.parametrize(
    ("metadata", "request_", "target", "text"),
    [
        (
            HY_MT2,
            PLAIN,
            "de",
            "Translate the following text into German. Note that you should only output the translated result without "
            "any additional explanation:\n\nThe hull is dry.",
        ),
        (
            HY_MT2,
            TERMS,
            "de",
            "Reference the following translations:\nhull translates to Rumpf\nkeel translates to Kiel\n\n"
            "Translate the following text into German. Note that you must ONLY output the translated result without "
            "any additional explanation:\n\nThe hull is dry.",
        ),
        (
            HY_MT2,
            BACKGROUND,
            "de",
            "[Background Information]\nGood morning. Look.\n\nPlease translate the following text into German, taking "
            "the provided background information into consideration.\n\n[Source Text]\nThe hull is dry.",
        ),
        (HY_MT2, PLAIN, "zh", "将以下文本翻译为 中文，注意只需要输出翻译后的结果，不要额外解释：\n\nThe hull is dry."),
        (
            HY_MT2,
            TERMS,
            "zh-Hant",
            "参考下面的翻译：\nhull 翻译成 Rumpf\nkeel 翻译成 Kiel\n将以下文本翻译为 繁体中文，"
            "注意只需要输出翻译后的结果，不要额外解释：\n\nThe hull is dry.",
        ),
        (
            HY_MT2,
            BACKGROUND,
            "zh",
            "【背景信息】\nGood morning. Look.\n\n请结合背景信息将以下文本翻译为 中文。\n\n"
            "【待翻译文本】\nThe hull is dry.",
        ),
        (
            HY_MT15,
            PLAIN,
            "de",
            "Translate the following segment into German, without additional explanation.\n\nThe hull is dry.",
        ),
        (
            HY_MT15,
            PLAIN,
            "zh",
            "将以下文本翻译为中文，注意只需要输出翻译后的结果，不要额外解释：\n\nThe hull is dry.",
        ),
        (
            HY_MT15,
            TERMS,
            "de",
            "参考下面的翻译：\nhull 翻译成 Rumpf\nkeel 翻译成 Kiel\n\n将以下文本翻译为德语，"
            "注意只需要输出翻译后的结果，不要额外解释：\nThe hull is dry.",
        ),
        (
            HY_MT15,
            BACKGROUND,
            "ja",
            "Good morning. Look.\n参考上面的信息，把下面的文本翻译成日语，注意不需要翻译上文，"
            "也不要额外解释：\nThe hull is dry.",
        ),
    ],
)
def test_hunyuan(metadata: dict[str, str], request_: Request, target: str, text: str) -> None:
    assert rendered(metadata, request_, target=target) == f"<U>{text}<A>"


def test_translategemma() -> None:
    assert rendered(TRANSLATEGEMMA, PLAIN) == (
        "<start_of_turn>user\nYou are a professional English (en) to German (de) translator. Your goal is to "
        "accurately convey the meaning and nuances of the original English text while adhering to German grammar, "
        "vocabulary, and cultural sensitivities.\nProduce only the German translation, without any additional "
        "explanations or commentary. Please translate the following English text into German:\n\n\nThe hull is dry."
        "<end_of_turn>\n<start_of_turn>model\n"
    )


@pytest.mark.parametrize(("target", "code"), [("de", "de"), ("de-AT", "de-AT"), ("zh-CN", "zh"), ("pt-PT", "pt-PT")])
def test_translategemma_names_codes_whatever_its_template(target: str, code: str) -> None:
    text = rendered(TRANSLATEGEMMA, PLAIN, target=target)
    assert f" ({code}) translator." in text
    assert rendered({"tokenizer.chat_template": "{# source_lang_code #}"}, PLAIN, target=target) == text


@pytest.mark.parametrize(("request_", "field"), [(TERMS, "glossary"), (BACKGROUND, "context")])
def test_translategemma_takes_text_only(request_: Request, field: str) -> None:
    with pytest.raises(OptionError, match=f"^{field}: TranslateGemma"):
        rendered(TRANSLATEGEMMA, request_)


@pytest.mark.parametrize("metadata", [HY_MT2, HY_MT15 | {"general.name": "HY-MT1.5-7B"}])
def test_hunyuan_unknown_language(metadata: dict[str, str]) -> None:
    with pytest.raises(OptionError, match=r"^target language 'fi' is not supported by this model \(allowed: zh, "):
        rendered(metadata, PLAIN, target="fi")


def test_hunyuan_language_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prompter = Prompter(HY_MT2, parse_language("en"), parse_language("de"))
    monkeypatch.setattr(prompt, "closest", None)  # it takes milliseconds
    assert prompter.segments(PLAIN)


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("Hy-MT2-1.8B", "hy-mt2"),
        ("Hy MT2 7B", "hy-mt2"),
        ("HY-MT1.5-7B", "hy-mt1.5"),
        ("HY MT1.5 1.8B", "hy-mt1.5"),
        ("Hunyuan-MT-7B", "hy-mt1.5"),
        ("translategemma-12b-it", "translategemma"),
        ("MiLMMT 46 4B v1.0", "milmmt"),
        ("CAT Translate 1.4b", "cat-translate"),
        ("Qwen3.5 4B", "chat"),
        ("Gemma 4 E2B It", "chat"),
        ("Hunyuan 7B Instruct", "chat"),
        ("Gemma 3 4b It", "chat"),
    ],
)
def test_choice(name: str, template: str) -> None:
    assert choose_template({"general.name": name, "tokenizer.chat_template": HUNYUAN}).name == template


MILMMT = {"general.name": "MiLMMT 46 4B v1.0"}
CAT = {"general.name": "CAT Translate 1.4b", "tokenizer.chat_template": HUNYUAN}


def test_milmmt() -> None:
    assert rendered(MILMMT, PLAIN) == ("Translate this from English to German:\nEnglish: The hull is dry.\nGerman:")
    assert rendered(MILMMT, PLAIN, target="zh-TW").endswith("\nChinese (Traditional):")
    assert rendered(MILMMT, PLAIN, target="zh").endswith("\nChinese (Simplified):")


def test_cat_translate() -> None:
    text = "Translate the following English text into Japanese.\n\n The hull is dry."
    assert text in rendered(CAT, PLAIN, target="ja")


@pytest.mark.parametrize(("metadata", "name"), [(MILMMT, "MiLMMT-46"), (CAT, "CAT-Translate")])
@pytest.mark.parametrize(("request_", "field"), [(TERMS, "glossary"), (BACKGROUND, "context")])
def test_models_that_take_text_only(metadata: dict[str, str], name: str, request_: Request, field: str) -> None:
    with pytest.raises(OptionError, match=f"^{field}: {name}"):
        rendered(metadata, request_, target="ja")


@pytest.mark.parametrize(
    ("metadata", "target", "models"),
    [
        (HY_MT2, "sv", "translategemma-4b and milmmt-46-4b support it"),
        (CAT, "de", "hy-mt2-1.8b and translategemma-4b support it"),
        (MILMMT, "uk", "hy-mt2-1.8b and translategemma-4b support it"),
        (MILMMT, "yo", "lists models with more"),
    ],
)
def test_language_outside_names_models_that_have_it(metadata: dict[str, str], target: str, models: str) -> None:
    with pytest.raises(OptionError, match=f"^target language '{target}' is not supported .*{models}"):
        rendered(metadata, PLAIN, target=target)


@pytest.mark.parametrize(
    ("metadata", "target", "warned"),
    [
        (TRANSLATEGEMMA, "km", ["Khmer is not among the languages of TranslateGemma; hy-mt2-1.8b and milmmt-46-4b"]),
        ({"general.name": "Tower Plus 2B", "general.architecture": "gemma2"}, "tr", ["Turkish is not among"]),
        (TRANSLATEGEMMA, "sv", []),
    ],
)
def test_language_outside_is_warned_of(
    metadata: dict[str, str], target: str, warned: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert rendered(metadata, PLAIN, target=target)
    assert len(caplog.messages) == len(warned)
    assert all(message.startswith(each) for message, each in zip(caplog.messages, warned, strict=True))


def test_every_model_of_the_table_is_in_the_catalogue() -> None:
    assert set(prompt.COVERED) <= set(CATALOGUE)


@pytest.mark.parametrize("metadata", [HY_MT2, HY_MT15, TRANSLATEGEMMA])
def test_source_is_last(metadata: dict[str, str]) -> None:
    """What follows the source is the template's end of the turn, so that a growing source keeps the cache."""
    prompter = Prompter(metadata, parse_language("en"), parse_language("de"))
    _before, source, after = prompter.segments(PLAIN)
    assert (source.text, source.special) == ("The hull is dry.", False)
    assert after.text in ("<A>", "<end_of_turn>\n<start_of_turn>model\n")
