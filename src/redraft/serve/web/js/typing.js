// What is typed: every line an utterance, translated while it is written.

/** Milliseconds without a key after which the line is sent as it stands. */
const REST = 150;

/**
 * @param {HTMLTextAreaElement} box where is typed
 * @param {() => import("./session.js").Session | null} ready gives the session, begun if need be; null where there can
 *   be none
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
    /** What was typed belongs to no session any more. */
    reset() {
      clearTimeout(timer);
      run = null;
    },
  };
}
