// <redraft-captions room="hall-1" language="de">: captions of a room or a session in any page.  The overlay is this
// element alone.  Its attributes are the options of the overlay (overlay-options.js), and `src`, the server's address, by
// default the server that this file comes from.  `query`, if it is set, stands for the attributes that are options.
//
// Pages style the parts "captions" (one for each language), "line", "unstable" and "problem", and set `--size`, `--colour`
// and the other options that have no attribute.
//
// Events: "state" and "problem" of a viewer (viewer.js); invalid options are a "problem" too, and shown, as is what keeps
// captions from coming.

import { Announcer } from "./js/captions/announcer.js";
import { Captions } from "./js/captions/captions.js";
import { element } from "./js/captions/elements.js";
import { sameOf, withSpoken } from "./js/captions/languages.js";
import { OPTIONS, optionsOf, style } from "./js/forms/overlay-options.js";
import { PASSING } from "./js/net/backoff.js";
import { Viewer } from "./js/net/viewer.js";

/** Milliseconds within which its style sheet must come; without it, captions are shown all the same. */
const STYLED = 5000;
/** Number of captions kept, more than fit. */
const MOST = 12;
const HERE = new URL(".", import.meta.url);

class RedraftCaptions extends HTMLElement {
  static observedAttributes = ["src", ...Object.keys(OPTIONS)];

  /** @type {string | null} */
  query = null;
  #look = element("link", { rel: "stylesheet", href: new URL("css/overlay.css", HERE) });
  #ready = new Promise((ready) => {
    this.#look.onload = this.#look.onerror = ready;
    setTimeout(ready, STYLED);
  });
  #problem = element("p", { id: "problem", className: "wrong-options", part: "problem", role: "alert", hidden: true });
  #places = element("div");
  #region = element("div", { className: "unseen", role: "log" });
  #viewer = null;
  /** What makes lines of its captions, in reading mode. */
  #lines = null;
  /** Language -> its captions. */
  #captions = new Map();
  /** Timer that clears the captions after a silence. */
  #silence = 0;
  /** Number of the last restart. */
  #turn = 0;

  constructor() {
    super();
    this.attachShadow({ mode: "open" }).append(this.#look, this.#problem, this.#places, this.#region);
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
    this.#lines?.stop();
    this.#viewer = this.#lines = null;
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
    this.#viewer = new Viewer({ ...options, server }, options.language);
    this.#lines = lines && new lines(this.#viewer, options.reading);
    this.#listen(this.#lines ?? this.#viewer, options);
    this.#viewer.connect();
  }

  #listen(viewer, options) {
    const announcer = new Announcer(this.#region);
    let session = null;
    let targets = [];
    const add = (tag) => {
      const place = element("div", { className: "overlay", part: "captions", role: "table", ariaLabel: "Captions" });
      style(place, options);
      const captions = new Captions(place, new Map([[tag, { name: "" }]]), announcer, { most: MOST });
      place.append(captions.rows);
      this.#places.append(place);
      this.#captions.set(tag, captions);
    };
    /** The captions in the language of a message, if they are shown; without a wanted language, that of the first one. */
    const shown = ({ language: tag }) => {
      if (!options.language.length && !this.#captions.size && targets.includes(tag)) add(tag);
      return this.#captions.get(tag);
    };
    /** Whether a caption from before the page was loaded would have been cleared by now. */
    const faded = ({ age_ms: age = 0 }) => options.clear > 0 && age >= options.clear * 1000;
    const show = (type, message) => {
      const captions = shown(message);
      if (faded(message)) {
        if (type === "final") captions?.pass(message);
        return;
      }
      if (!captions || (type === "partial" && !message.text && options.unstable === "hide")) return;
      captions[type](message);
      clearTimeout(this.#silence);
      if (!options.clear) return;
      const clear = () => this.#captions.forEach((each) => each.clear());
      this.#silence = setTimeout(clear, options.clear * 1000 - (message.age_ms ?? 0));
    };
    viewer.addEventListener("about", ({ detail }) => {
      const languages = withSpoken(detail.source_language, detail.targets);
      targets = detail.targets;
      if (session !== detail.session) {
        this.#clear();
        new Set(options.language.map((tag) => sameOf(tag, languages)).filter(Boolean)).forEach(add);
      }
      session = detail.session;
      const unknown = options.language.filter((tag) => !sameOf(tag, languages));
      this.#say(unknown.length ? `This session has no captions in ${unknown.join(", ")}: language must be one of ${languages.join(", ")}.` : "");
    });
    for (const type of ["partial", "final"]) viewer.addEventListener(type, ({ detail }) => show(type, detail));
    viewer.addEventListener("hide", ({ detail }) => this.#captions.get(detail.language)?.hide(detail));
    viewer.addEventListener("problem", ({ detail: { fatal, code, message } }) => {
      const lasts = code === "limit" || !PASSING.has(code);
      if (fatal && lasts && !this.#places.textContent) this.#say(message); // not over what an audience reads
    });
    for (const type of ["problem", "state"]) viewer.addEventListener(type, ({ detail }) => this.#emit(type, detail));
  }

  #clear() {
    clearTimeout(this.#silence);
    this.#places.replaceChildren();
    this.#captions.clear();
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
