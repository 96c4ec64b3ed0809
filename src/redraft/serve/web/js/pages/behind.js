// A notice with advice when captions lag behind speech.

/** Lag in milliseconds above which the notice is shown, and below which it is hidden. */
const SHOWN = 5_000;
const HIDDEN = 2_500;
/** Samples in a millisecond of audio. */
const RATE = 16;

/**
 * @param {import("../net/session.js").Session} session
 * @param {(sentence: string) => void} notice shows the sentence; "" hides it
 */
export function watchLag(session, notice) {
  let recogniser = 0;
  const captions = new Map();
  let shown = false;
  let able = "";
  const look = () => {
    const behind = Math.max(recogniser, ...captions.values());
    if (behind <= (shown ? HIDDEN : SHOWN)) {
      if (shown) notice("");
      shown = false;
      return;
    }
    shown = true;
    const [slow, remedy] =
      recogniser > behind / 2
        ? ["The recogniser is", "choose a smaller model or a machine with more cores"]
        : ["Captions are", able || "choose fewer languages, a smaller model, or a machine with more cores"];
    notice(`${slow} ${Math.round(behind / 1000)} s behind the speech: ${remedy}.`);
  };
  session.addEventListener("stats", ({ detail }) => {
    able = detail.able ?? "";
  });
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
