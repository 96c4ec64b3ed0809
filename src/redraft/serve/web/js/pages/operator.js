// The owner's control of viewers' captions: pause, hide and correct, and name speakers.

import { at, isPressed, press } from "../captions/elements.js";
import { mark, nameOf } from "../captions/languages.js";
import { isPaused, speakersNamed } from "../net/control.js";
import { notice } from "./status.js";

const CHOOSE = "Choose a caption to hide or correct it.";
const LATER = "The server does not answer now. Viewers see this change when the page has reconnected.";

/**
 * @param {(sentence: string) => void} problem shows an error
 * @returns {(session: import("../net/session.js").Session | null, columns: import("../captions/columns.js").Columns, whole?: boolean) => void}
 *   begins the control of a session with its columns, or ends it where that is null; `whole` says whether captions are
 *   whole ones, which can be chosen, and not lines
 */
export function makeOperator(problem) {
  let session = null;
  let columns = null;
  /** The caption that the dialog is about. */
  let chosen = null;
  const editor = at("editor");

  const say = (message) => session.control(message) || problem(LATER);

  const showPaused = (paused) => {
    press(at("pause"), paused);
    at("pause").textContent = paused ? "Resume for viewers" : "Pause for viewers";
    at("paused").hidden = !paused;
  };

  const open = (caption) => {
    const { language, text, speaker = "", final, unseen } = caption;
    const box = at("corrected");
    chosen = caption;
    at("editor-language").textContent = nameOf(language);
    box.value = text;
    box.disabled = !final;
    at("apply").disabled = !final && !speaker;
    at("speaker").value = speaker;
    at("speaker").disabled = at("speaker").closest("p").hidden = !speaker;
    mark(box, language);
    at("hide").textContent = unseen ? "Show to viewers" : "Hide from viewers";
    editor.showModal();
    if (final) box.select();
  };

  const edit = (editing) => {
    press(at("edit"), editing);
    notice(editing ? CHOOSE : "", "edit");
    columns.choose(editing ? open : null);
  };

  const decide = (message) => {
    const { utterance, language } = chosen;
    editor.close();
    say({ ...message, utterance, language });
  };

  const name = (speaker, name) => {
    for (const each of speakersNamed(speaker, session.memory.session)) say({ type: "name", speaker: each, name });
    for (const row of document.querySelectorAll("#captions .utterance")) {
      if (row.dataset.speaker === speaker) row.dataset.speaker = name;
    }
  };

  at("pause").addEventListener("click", () => say({ type: "pause", paused: !isPressed(at("pause")) }));
  at("edit").addEventListener("click", () => edit(!isPressed(at("edit"))));
  editor.addEventListener("click", ({ target }) => target === editor && editor.close()); // a click on the backdrop
  at("leave").addEventListener("click", () => editor.close());
  at("hide").addEventListener("click", () => decide({ type: "hide", hidden: !chosen.unseen }));
  at("correct").addEventListener("submit", (event) => {
    event.preventDefault();
    const { text, speaker, final } = chosen;
    if (speaker && at("speaker").value !== speaker) name(speaker, at("speaker").value);
    if (final && at("corrected").value !== text) decide({ type: "correct", text: at("corrected").value });
    editor.close();
  });

  return (attended, shown, whole = true) => {
    if (columns) edit(false);
    session = attended;
    columns = shown;
    at("operator").hidden = !session;
    at("edit").hidden = !whole;
    if (editor.open) editor.close();
    showPaused(isPaused(session?.memory.session));
    session?.addEventListener("pause", ({ detail }) => showPaused(detail.paused));
  };
}
