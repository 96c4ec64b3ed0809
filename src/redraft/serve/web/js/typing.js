// Typed text: every line is an utterance, translated while it is typed.

/** Milliseconds after the last key at which the line is sent. */
const REST = 150;

/**
 * @param {HTMLTextAreaElement} box text area
 * @param {() => import("./session.js").Session | null} ready returns the session, started if necessary, or null
 */
export function listenToTyping(box, ready) {
  let timer = null;
  let run = null; // the name of the line that is being typed

  const send = (text, final) => {
    const session = ready();
    if (!session || (run === null && !text)) return;
    run ??= session.nextRun();
    session.send(run, text, final);
    if (final) run = null;
  };
  const flush = () => {
    clearTimeout(timer);
    const lines = box.value.split("\n");
    for (const line of lines.slice(0, -1)) send(line.trim(), true);
    if (lines.length > 1) box.value = lines.at(-1);
    send(box.value.trim(), false);
  };

  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(flush, box.value.includes("\n") ? 0 : REST);
  });
  return {
    /** Detach the typed text from its session. */
    reset() {
      clearTimeout(timer);
      run = null;
    },
  };
}
