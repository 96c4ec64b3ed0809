// What languages are called, and which way they are written.

/** Offered where the model does not say which languages it knows. */
export const COMMON = "ar bn cs da de el en es fa fi fr he hi hu id it ja ko nl no pl pt ro ru sv th tr uk ur vi zh".split(" ");

/** The language's name in English; the tag itself where it is none that the browser knows. */
export function nameOf(tag) {
  return named(tag, "en");
}

/** The language's name in itself. */
export function ownNameOf(tag) {
  return named(tag, tag);
}

function named(tag, locale) {
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
    element.dir = "auto"; // an English name instead of a tag
  }
}
