// Converts a pasted text to timed updates, as if it were spoken.

const SECONDS_A_WORD = 0.4;
const WORDS_AN_UPDATE = 2;
const PAUSE = 0.6;
/** Characters spoken in the time of a word, in scripts without spaces. */
const UNSPACED = 3;

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
