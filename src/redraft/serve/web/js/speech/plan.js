// Converts a pasted text to timed updates, as if it were spoken.

import { ask } from "../net/server.js";

/** Characters sent to the server at a time, which splits them into sentences. */
const PIECE = 100_000;
const SECONDS_A_WORD = 0.4;
const WORDS_AN_UPDATE = 2;
const PAUSE = 0.6;
/** Characters spoken in the time of a word, in scripts without spaces. */
const UNSPACED = 3;

/**
 * Split a text of any length into sentences, piece by piece; the sentence that a cut may have divided is asked again.
 *
 * @param {string} text
 * @param {string} [key] API key
 * @returns {Promise<{sentences?: string[], error?: object}>} without either if there was no response
 */
export async function sentencesOf(text, key) {
  const sentences = [];
  for (let begin = 0; begin < text.length; ) {
    const high = /[\uD800-\uDBFF]/.test(text[begin + PIECE - 1] ?? ""); // half of a character
    const piece = text.slice(begin, begin + PIECE - (high ? 1 : 0));
    const { body, error } = piece.trim() ? await ask("v1/sentences", { text: piece }, key) : { body: { sentences: [] } };
    if (!body) return { error };
    const last = begin + piece.length < text.length ? body.sentences.at(-1) : undefined;
    const cut = last === undefined ? 0 : piece.lastIndexOf(last);
    sentences.push(...(cut > 0 ? body.sentences.slice(0, -1) : body.sentences));
    begin += cut > 0 ? cut : piece.length;
  }
  return { sentences };
}

/**
 * @param {string[]} sentences of the text
 * @param {boolean} spoken word by word; otherwise sentence by sentence, immediately
 */
export function planOf(sentences, spoken) {
  const plan = [];
  let clock = 0;
  sentences.forEach((sentence, index) => {
    const utterance = String(index + 1);
    const beginnings = spoken ? beginningsOf(sentence) : [];
    for (const beginning of beginnings) {
      clock += SECONDS_A_WORD * WORDS_AN_UPDATE;
      plan.push({ utterance, text: beginning, final: false, time: clock });
    }
    clock += spoken ? PAUSE : 0;
    plan.push({ utterance, text: sentence, final: true, time: clock });
  });
  return plan;
}

function beginningsOf(sentence) {
  const spaced = /\s/.test(sentence);
  const units = spaced ? sentence.split(/\s+/) : sentence.match(new RegExp(`.{1,${UNSPACED}}`, "gsu"));
  const ends = [];
  for (let end = WORDS_AN_UPDATE; end < units.length; end += WORDS_AN_UPDATE) ends.push(end);
  return ends.map((end) => units.slice(0, end).join(spaced ? " " : ""));
}
