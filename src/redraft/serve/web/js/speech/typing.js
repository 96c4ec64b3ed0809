// Typed text: every line is an utterance, translated while it is typed.  What no server has got stays in the box.

/** Milliseconds after the last key at which the line is sent. */
const REST = 150;

/**
 * @param {HTMLTextAreaElement} box text area
 * @param {() => import("../net/session.js").Session | null} ready returns the session, started if necessary, or null
 */
export function listenToTyping(box, ready) {
  let timer = null;
  let run = null; // the name of the line that is being typed
  let typed = new Set(); // the names of the session's lines
  let held = false; // whether to wait for Enter, since no session could be started

  const send = (session, text, final) => {
    if (run === null && !text) return;
    run ??= session.nextRun();
    typed.add(run);
    session.send(run, text, final);
    if (final) run = null;
  };
  const flush = () => {
    clearTimeout(timer);
    if (run === null && !box.value.trim()) return;
    held = false;
    const session = ready();
    if (!session) {
      held = true;
      return;
    }
    const lines = box.value.split("\n");
    for (const line of lines.slice(0, -1)) send(session, line.trim(), true);
    if (lines.length > 1) box.value = lines.at(-1);
    send(session, box.value.trim(), false);
  };

  box.addEventListener("input", ({ inputType }) => {
    clearTimeout(timer);
    const entered = box.value.includes("\n");
    if (held && !(entered && inputType === "insertLineBreak")) return;
    timer = setTimeout(flush, entered ? 0 : REST);
  });
  return {
    /** Try again to start a session with the next key. */
    release() {
      held = false;
    },
    /**
     * Detach the typed text from its session, which has ended.
     *
     * @param {Iterable<{utterance: string, text: string, final: boolean}>} open updates that no server has translated
     * @param {boolean} begun whether there was a session at all
     */
    reset(open, begun) {
      clearTimeout(timer);
      const lost = [...open].filter(({ utterance, final }) => final && typed.has(utterance)).map(({ text }) => text);
      if (lost.length) box.value = [...lost, box.value].join("\n");
      held = !begun && box.value.trim() !== "";
      run = null;
      typed = new Set();
    },
  };
}
