// One line when captions fall behind the speech, and what helps.

/** Milliseconds behind from which that is said, and below which it no longer is. */
const SAID = 5_000;
const OVER = 2_500;
/** Samples in a millisecond of audio. */
const RATE = 16;

/**
 * @param {import("./session.js").Session} session
 * @param {(sentence: string) => void} notice told the sentence, or "" once captions have caught up
 */
export function watchLag(session, notice) {
  let recogniser = 0;
  const captions = new Map();
  let said = false;
  const look = () => {
    const behind = Math.max(recogniser, ...captions.values());
    if (behind <= (said ? OVER : SAID)) {
      if (said) notice("");
      said = false;
      return;
    }
    said = true;
    const slow = recogniser > behind / 2 ? "The recogniser is" : "Captions are";
    const remedy = recogniser > behind / 2 ? "choose a smaller model" : "choose fewer languages, a smaller model,";
    notice(`${slow} ${Math.round(behind / 1000)} s behind the speech: ${remedy} or a machine with more cores.`);
  };
  session.addEventListener("listening", ({ detail: { listening, received, recognised } }) => {
    recogniser = listening ? (received - recognised) / RATE : 0;
    look();
  });
  for (const type of ["partial", "final"]) {
    session.addEventListener(type, ({ detail: { language, lag_ms, corrected } }) => {
      if (corrected) return;
      captions.set(language, lag_ms);
      look();
    });
  }
}
