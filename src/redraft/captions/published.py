"""The prompts of translation models, as their publishers give them.

A translation model is only good with the wording that it was trained on.  Each function returns the user's message for
a request; what goes around it comes from the model's chat template (`redraft.captions.prompt`).  None of these models
has a system prompt, or starts its answer with the name of a language.

* `hy_mt2`: Hy-MT2 (Tencent-Hunyuan/Hy-MT2, README.md, 2026): default, terminology and background prompts;
* `hy_mt15`: HY-MT1.5 (model card of tencent/HY-MT1.5-1.8B, 2025): default, terminology and context prompts;
* `translategemma`: TranslateGemma (model card of google/translategemma-4b-it, 2026), whose instruction is in its
  template.
"""

from __future__ import annotations

from functools import lru_cache

from redraft.captions.languages import Language, closest, parse_language
from redraft.captions.request import Request
from redraft.errors import OptionError

#: The languages of both models, with their names in Chinese, which prompts in Chinese use.
_HUNYUAN = dict(
    each.split(":")
    for each in (
        "zh:中文 en:英语 fr:法语 pt:葡萄牙语 es:西班牙语 ja:日语 tr:土耳其语 ru:俄语 ar:阿拉伯语 ko:韩语 th:泰语 "
        "it:意大利语 de:德语 vi:越南语 ms:马来语 id:印尼语 tl:菲律宾语 hi:印地语 zh-Hant:繁体中文 pl:波兰语 "
        "cs:捷克语 nl:荷兰语 km:高棉语 my:缅甸语 fa:波斯语 gu:古吉拉特语 ur:乌尔都语 te:泰卢固语 mr:马拉地语 "
        "he:希伯来语 bn:孟加拉语 ta:泰米尔语 uk:乌克兰语 bo:藏语 kk:哈萨克语 mn:蒙古语 ug:维吾尔语 yue:粤语"
    ).split()
)


def hy_mt2(request: Request, source: Language, target: Language) -> str:
    """Return the message for Hy-MT2; earlier sentences are its background information.

    With terms and background together, which the publisher does not combine, the terms come first.

    Raises:
        OptionError: the model was not trained on a language.
    """
    chinese = _in_chinese(source, target)
    name = _chinese_name(target) if chinese else target.name
    text, terms, sources = request.source, request.glossary, " ".join(before for before, _ in request.context)
    message = ""
    if terms and chinese:
        message = "参考下面的翻译：\n" + "".join(f"{term} 翻译成 {wanted}\n" for term, wanted in terms)
    elif terms:
        message = "Reference the following translations:\n"
        message += "".join(f"{term} translates to {wanted}\n" for term, wanted in terms) + "\n"
    if sources and chinese:
        return f"{message}【背景信息】\n{sources}\n\n请结合背景信息将以下文本翻译为 {name}。\n\n【待翻译文本】\n{text}"
    if sources:
        return (
            f"{message}[Background Information]\n{sources}\n\nPlease translate the following text into {name}, taking "
            f"the provided background information into consideration.\n\n[Source Text]\n{text}"
        )
    if chinese:
        return f"{message}将以下文本翻译为 {name}，注意只需要输出翻译后的结果，不要额外解释：\n\n{text}"
    only = "must ONLY" if terms else "should only"
    return (
        f"{message}Translate the following text into {name}. Note that you {only} output the translated result without "
        f"any additional explanation:\n\n{text}"
    )


def hy_mt15(request: Request, source: Language, target: Language) -> str:
    """Return the message for HY-MT1.5; only its default prompt has an English form.

    With terms and context together, which the publisher does not combine, the terms come first.

    Raises:
        OptionError: the model was not trained on a language.
    """
    chinese = _in_chinese(source, target)
    text, terms, sources = request.source, request.glossary, " ".join(before for before, _ in request.context)
    if not (chinese or terms or sources):
        return f"Translate the following segment into {target.name}, without additional explanation.\n\n{text}"
    name, message = _chinese_name(target), ""
    if terms:
        message = "参考下面的翻译：\n" + "".join(f"{term} 翻译成 {wanted}\n" for term, wanted in terms) + "\n"
    if sources:
        ending = f"{sources}\n参考上面的信息，把下面的文本翻译成{name}，注意不需要翻译上文，也不要额外解释：\n{text}"
        return message + ending
    gap = "\n" if terms else "\n\n"
    return f"{message}将以下文本翻译为{name}，注意只需要输出翻译后的结果，不要额外解释：{gap}{text}"


def translategemma(request: Request, source: Language, target: Language) -> str:
    """Return the message for TranslateGemma, which has no form for context or terms.

    Raises:
        OptionError: there are terms or earlier sentences.
    """
    if request.glossary or request.context:
        option = "glossary" if request.glossary else "context"
        raise OptionError(": TranslateGemma does not support it, so leave it out or use another model", option)
    return (
        f"You are a professional {source.name} ({source.code}) to {target.name} ({target.code}) translator. Your goal "
        f"is to accurately convey the meaning and nuances of the original {source.name} text while adhering to "
        f"{target.name} grammar, vocabulary, and cultural sensitivities.\nProduce only the {target.name} translation, "
        f"without any additional explanations or commentary. Please translate the following {source.name} text into "
        f"{target.name}:\n\n\n{request.source}"
    )


def _in_chinese(source: Language, target: Language) -> bool:
    """Whether a pair is with Chinese, for which the prompts are in Chinese.

    Raises:
        OptionError: a language is not among those of the models.
    """
    found = [_hunyuan_tag(source, "source language"), _hunyuan_tag(target, "target language")]
    return not {"zh", "zh-Hant", "yue"}.isdisjoint(found)


def _chinese_name(language: Language) -> str:
    return _HUNYUAN[_hunyuan_tag(language, "target language")]


@lru_cache(1024)  # finding it takes milliseconds, and every prompt needs it
def _hunyuan_tag(language: Language, field: str) -> str:
    found = closest(language, [parse_language(tag) for tag in _HUNYUAN])
    if found is None:
        allowed = ", ".join(_HUNYUAN)
        raise OptionError(f"{language.tag!r} is not supported by this model; allowed: {allowed}", field)
    return found.tag
