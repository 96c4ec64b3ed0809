// Names and writing directions of languages.

import { t } from "./words.js";

/** Stands for what is spoken where any language may be. */
export const AUTO = "auto";

/** Offered if the model does not declare its languages. */
export const COMMON = "ar bn cs da de el en es fa fi fr he hi hu id it ja ko nl no pl pt ro ru sv th tr uk ur vi zh".split(" ");

/** The language's English name; its tag if the browser does not know it. */
export function nameOf(tag) {
  return named(tag, "en");
}

/** The language's own name. */
export function ownNameOf(tag) {
  return named(tag, tag);
}

/** The one of these tags that stands for a language, given by tag or by English name; undefined if none does. */
export function sameOf(language, tags) {
  const wanted = canonical(language);
  return tags.find((tag) => canonical(tag) === wanted || nameOf(tag).toLowerCase() === language.toLowerCase());
}

/** The languages of a session's captions: the one that is spoken, unless it is a target too, and the targets. */
export const withSpoken = (spoken, targets) => [...new Set(spoken ? [spoken, ...targets] : targets)];

/** The language of the captions that show what is spoken: any, if several languages are spoken, unless all are targets. */
export function originalOf({ source_language: first, also_spoken: others = [], targets }) {
  const among = [first, ...others].map((tag) => sameOf(tag, targets));
  return others.length && !among.every(Boolean) ? AUTO : among[0] ?? first;
}

/** The shortest tag of the same language; the text itself if it is no tag. */
function canonical(tag) {
  try {
    return new Intl.Locale(new Intl.Locale(tag.replaceAll("_", "-")).minimize().baseName.replace(/^nb\b/, "no")).baseName;
  } catch {
    return tag;
  }
}

function named(tag, locale) {
  if (tag === AUTO) return t("Original");
  try {
    return new Intl.DisplayNames([locale], { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** Mark an element as text of a language. */
export function mark(element, tag) {
  try {
    const locale = new Intl.Locale(tag);
    element.lang = tag;
    element.dir = (locale.getTextInfo?.() ?? locale.textInfo)?.direction ?? "auto";
  } catch {
    element.dir = "auto"; // it is a name, not a tag
  }
}
