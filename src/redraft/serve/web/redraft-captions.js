// <redraft-captions room="hall-1" language="de">: captions of a room or a session in any page.  The overlay is this
// element alone.  Its attributes are the options of the overlay (overlay-options.js), and `src`, the server's address, by
// default the server that this file comes from.  `query`, if it is set, stands for the attributes that are options.
//
// Events: "state" and "problem" of a viewer (viewer.js); invalid options are a "problem" too, and shown.

import { Announcer } from "./js/captions/announcer.js";
import { Captions } from "./js/captions/captions.js";
import { sameOf } from "./js/captions/languages.js";
import { OPTIONS, optionsOf, style } from "./js/forms/overlay-options.js";
import { Viewer } from "./js/net/viewer.js";

/** Number of captions kept, more than fit. */
const MOST = 12;
const HERE = new URL(".", import.meta.url);

const element = (tag, properties) => Object.assign(document.createElement(tag), properties);

class RedraftCaptions extends HTMLElement {
  static observedAttributes = ["src", ...Object.keys(OPTIONS)];

  /** @type {string | null} */
  query = null;
  #look = element("link", { rel: "stylesheet", href: new URL("css/overlay.css", HERE) });
  #ready = new Promise((ready) => (this.#look.onload = this.#look.onerror = ready));
  #problem = element("p", { id: "problem", className: "wrong-options", role: "alert", hidden: true });
  #place = element("div", { className: "overlay", role: "table", ariaLabel: "Captions" });
  #region = element("div", { className: "unseen", role: "log" });
  #viewer = null;
  #captions = null;
  /** Timer that clears the captions after a silence. */
  #silence = 0;
  /** Number of the last restart. */
  #turn = 0;

  constructor() {
    super();
    this.attachShadow({ mode: "open" }).append(this.#look, this.#problem, this.#place, this.#region);
  }

  connectedCallback() {
    this.#restart();
  }

  disconnectedCallback() {
    this.#restart();
  }

  attributeChangedCallback() {
    this.#restart();
  }

  /** Begin with the attributes as they are when all changes of the moment are made, if the element is in a page. */
  async #restart() {
    const turn = ++this.#turn;
    this.#viewer?.disconnect();
    this.#viewer = null;
    this.#clear();
    this.#say("");
    if (!this.isConnected) return;
    await this.#ready;
    if (turn !== this.#turn) return;
    try {
      const options = optionsOf(this.query ?? this.#attributes);
      const lines = options.reading && (await import("./js/captions/reading.js")).ReadingLines;
      if (turn === this.#turn) this.#begin(options, lines);
    } catch (error) {
      this.#say(error.message);
      this.#emit("problem", { fatal: true, message: error.message });
    }
  }

  get #attributes() {
    const given = Object.keys(OPTIONS).filter((name) => this.hasAttribute(name));
    return new URLSearchParams(given.map((name) => [name, this.getAttribute(name)]));
  }

  #begin(options, lines) {
    const server = new URL((this.getAttribute("src") ?? HERE.href).replace(/\/?$/, "/"), location.href);
    style(this.#place, options);
    const source = new Viewer({ ...options, server }, options.language ? [options.language] : []);
    this.#viewer = lines ? new lines(source, options.reading) : source;
    this.#listen(this.#viewer, options);
    this.#viewer.connect();
  }

  #listen(viewer, options) {
    const announcer = new Announcer(this.#region);
    let session = null;
    let { language } = options;
    /** The captions, if a message is in the language that is shown: the first to come, since only the wanted one comes. */
    const shown = ({ language: tag, age_ms: age = 0 }) => {
      language ??= tag;
      if (tag !== language) return null;
      if (!this.#captions) {
        this.#captions = new Captions(this.#place, new Map([[language, { tag: language, name: "" }]]), { most: MOST });
        this.#place.append(this.#captions.rows);
      }
      if (faded(age)) return this.#captions;
      clearTimeout(this.#silence);
      if (options.clear) this.#silence = setTimeout(() => this.#captions?.clear(), options.clear * 1000 - age);
      return this.#captions;
    };
    /** Whether a caption from before the page was loaded would have been cleared by now. */
    const faded = (age = 0) => options.clear > 0 && age >= options.clear * 1000;
    viewer.addEventListener("about", ({ detail: { session: name, targets } }) => {
      if (session !== null && session !== name) {
        this.#clear();
        language = null;
      }
      session = name;
      const known = !options.language || sameOf(options.language, targets);
      this.#say(known ? "" : `This session has no captions in ${options.language}: language must be one of ${targets.join(", ")}.`);
    });
    viewer.addEventListener("partial", ({ detail }) => {
      if (faded(detail.age_ms)) return;
      if (detail.text || options.unstable !== "hide") shown(detail)?.partial(detail.language, detail);
    });
    viewer.addEventListener("final", ({ detail }) => {
      const captions = shown(detail);
      if (faded(detail.age_ms)) captions?.pass(detail.language, detail);
      else if (captions?.final(detail.language, detail)) announcer.say(detail.text, detail.language);
    });
    viewer.addEventListener("hidden", ({ detail: { utterance, language } }) => {
      announcer.unsay(this.#captions?.remove(utterance, language));
    });
    for (const type of ["problem", "state"]) viewer.addEventListener(type, ({ detail }) => this.#emit(type, detail));
  }

  #clear() {
    clearTimeout(this.#silence);
    this.#captions?.rows.remove();
    this.#captions = null;
  }

  #say(sentence) {
    this.#problem.textContent = sentence;
    this.#problem.hidden = !sentence;
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

customElements.define("redraft-captions", RedraftCaptions);
