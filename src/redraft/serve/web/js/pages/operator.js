// The owner's control of viewers' captions: pause, hide and correct, and name speakers.

import { at, isPressed, press } from "../captions/elements.js";
import { mark, nameOf } from "../captions/languages.js";
import { isPaused, speakersNamed } from "../net/control.js";
import { notice } from "./status.js";

const CHOOSE = "Choose a caption to hide or correct it.";
const LATER = "The server does not answer now. Viewers see this change when the page has reconnected.";

export class Operator {
  #session = null;
  #columns = null;
  #problem;
  /** The caption that the dialog is about. */
  #chosen = null;

  /** @param {(sentence: string) => void} problem shows an error */
  constructor(problem) {
    this.#problem = problem;
    at("pause").addEventListener("click", () => this.#say({ type: "pause", paused: !isPressed(at("pause")) }));
    at("edit").addEventListener("click", () => this.#edit(!isPressed(at("edit"))));
    at("editor").addEventListener("click", ({ target }) => target === at("editor") && at("editor").close()); // a click on the backdrop
    at("leave").addEventListener("click", () => at("editor").close());
    at("hide").addEventListener("click", () => this.#decide({ type: "hide", hidden: !this.#chosen.unseen }));
    at("correct").addEventListener("submit", (event) => {
      event.preventDefault();
      const { text, speaker, final } = this.#chosen;
      if (speaker && at("speaker").value !== speaker) this.#name(speaker, at("speaker").value);
      if (final && at("corrected").value !== text) this.#decide({ type: "correct", text: at("corrected").value });
      at("editor").close();
    });
  }

  /**
   * @param {import("../net/session.js").Session | null} session null when it is over
   * @param {import("../captions/columns.js").Columns} columns with its captions
   * @param {boolean} [whole] whether captions are whole ones, which can be chosen, and not lines
   */
  attend(session, columns, whole = true) {
    if (this.#columns) this.#edit(false);
    this.#session = session;
    this.#columns = columns;
    at("operator").hidden = !session;
    at("edit").hidden = !whole;
    if (at("editor").open) at("editor").close();
    this.#paused(isPaused(session?.memory.session));
    session?.addEventListener("pause", ({ detail }) => this.#paused(detail.paused));
  }

  #paused(paused) {
    press(at("pause"), paused);
    at("pause").textContent = paused ? "Resume for viewers" : "Pause for viewers";
    at("paused").hidden = !paused;
  }

  #edit(editing) {
    press(at("edit"), editing);
    notice(editing ? CHOOSE : "", "edit");
    this.#columns.choose(editing ? (caption) => this.#open(caption) : null);
  }

  #open(caption) {
    const { language, text, speaker = "", final, unseen } = caption;
    const box = at("corrected");
    this.#chosen = caption;
    at("editor-language").textContent = nameOf(language);
    box.value = text;
    box.disabled = !final;
    at("apply").disabled = !final && !speaker;
    at("speaker").value = speaker;
    at("speaker").disabled = at("speaker").closest("p").hidden = !speaker;
    mark(box, language);
    at("hide").textContent = unseen ? "Show to viewers" : "Hide from viewers";
    at("editor").showModal();
    if (final) box.select();
  }

  #decide(message) {
    const { utterance, language } = this.#chosen;
    at("editor").close();
    this.#say({ ...message, utterance, language });
  }

  #name(speaker, name) {
    for (const each of speakersNamed(speaker, this.#session.memory.session)) this.#say({ type: "name", speaker: each, name });
    for (const row of document.querySelectorAll("#captions .utterance")) {
      if (row.dataset.speaker === speaker) row.dataset.speaker = name;
    }
  }

  #say(message) {
    if (!this.#session.control(message)) this.#problem(LATER);
  }
}
