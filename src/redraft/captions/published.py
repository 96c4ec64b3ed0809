"""The prompts of translation models, as their publishers give them.

A translation model is only good with the wording that it was trained on.  Each function returns the user's message for
a request; what goes around it comes from the model's chat template (`redraft.captions.prompt`).  None of these models
has a system prompt, and only MiLMMT-46 starts its answer with the name of a language.

* `hy_mt2`: Hy-MT2 (Tencent-Hunyuan/Hy-MT2, README.md, 2026): default, terminology and background prompts;
* `hy_mt15`: HY-MT1.5 (model card of tencent/HY-MT1.5-1.8B, 2025): default, terminology and context prompts;
* `translategemma`: TranslateGemma (model card of google/translategemma-4b-it, 2026), whose instruction is in its
  template;
* `milmmt`: MiLMMT-46 (xiaomi-research/gemmax, README.md, 2026), a prompt without turns;
* `cat_translate`: CAT-Translate (test.py of cyberagent/CAT-Translate-3.3b-beta, 2026).
"""

from __future__ import annotations

from redraft.captions.coverage import CAT, HUNYUAN, MILMMT, supported_tag
from redraft.captions.languages import Language, parse_language
from redraft.captions.request import Request
from redraft.errors import OptionError

#: The languages of Hy-MT2 and HY-MT1.5 with their names in Chinese, which prompts in Chinese use.
_HUNYUAN = dict(
    zip(
        HUNYUAN.split(),
        (
            "中文 英语 法语 葡萄牙语 西班牙语 日语 土耳其语 俄语 阿拉伯语 韩语 泰语 意大利语 德语 越南语 马来语 "
            "印尼语 菲律宾语 印地语 繁体中文 波兰语 捷克语 荷兰语 高棉语 缅甸语 波斯语 古吉拉特语 乌尔都语 泰卢固语 "
            "马拉地语 希伯来语 孟加拉语 泰米尔语 乌克兰语 藏语 哈萨克语 蒙古语 维吾尔语 粤语"
        ).split(),
        strict=True,
    )
)
#: Names of languages in prompts of MiLMMT-46 that are not ours.
_MILMMT_NAMES = {"zh": "Chinese (Simplified)", "zh-Hant": "Chinese (Traditional)", "tl": "Tagalog"}


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
    _refuse_more(request, "TranslateGemma")
    return (
        f"You are a professional {source.name} ({source.code}) to {target.name} ({target.code}) translator. Your goal "
        f"is to accurately convey the meaning and nuances of the original {source.name} text while adhering to "
        f"{target.name} grammar, vocabulary, and cultural sensitivities.\nProduce only the {target.name} translation, "
        f"without any additional explanations or commentary. Please translate the following {source.name} text into "
        f"{target.name}:\n\n\n{request.source}"
    )


def milmmt(request: Request, source: Language, target: Language) -> str:
    """Return the whole prompt for MiLMMT-46, which has no turns, and no form for context or terms.

    Raises:
        OptionError: there are terms or earlier sentences, or the model was not trained on a language.
    """
    _refuse_more(request, "MiLMMT-46")
    tags = supported_tag(source, MILMMT, "source language"), supported_tag(target, MILMMT, "target language")
    first, second = (_MILMMT_NAMES.get(tag, parse_language(tag).name) for tag in tags)
    return f"Translate this from {first} to {second}:\n{first}: {request.source}\n{second}:"


def cat_translate(request: Request, source: Language, target: Language) -> str:
    """Return the message for CAT-Translate, which has no form for context or terms.

    Raises:
        OptionError: there are terms or earlier sentences, or a language is neither Japanese nor English.
    """
    _refuse_more(request, "CAT-Translate")
    for language, field in ((source, "source language"), (target, "target language")):
        supported_tag(language, CAT, field)
    return f"Translate the following {source.name} text into {target.name}.\n\n {request.source}"


def _refuse_more(request: Request, model: str) -> None:
    """Refuse terms and earlier sentences.

    Raises:
        OptionError: the request has some.
    """
    if request.glossary or request.context:
        option = "glossary" if request.glossary else "context"
        raise OptionError(f": {model} does not support it, so leave it out or use another model", option)


def _in_chinese(source: Language, target: Language) -> bool:
    """Whether a pair is with Chinese, for which the prompts are in Chinese.

    Raises:
        OptionError: a language is not among those of the models.
    """
    found = [supported_tag(source, HUNYUAN, "source language"), supported_tag(target, HUNYUAN, "target language")]
    return not {"zh", "zh-Hant", "yue"}.isdisjoint(found)


def _chinese_name(language: Language) -> str:
    return _HUNYUAN[supported_tag(language, HUNYUAN, "target language")]
