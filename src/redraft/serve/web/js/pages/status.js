// What the page says about itself: an error in a banner, until it is dismissed, a status line, the state of the
// connection, and the model that translates.

import { at, element, write } from "../captions/elements.js";
import { t } from "../captions/words.js";

const [bar, calm] = ["problem", "notice"].map(at);
/** Topic -> its line; the connection has precedence. */
const notices = new Map([["connection", ""]]);
bar.querySelector("button").addEventListener("click", () => {
  problem("");
  const main = document.querySelector("main"); // the focus must not go with the button
  main.tabIndex = -1;
  main.focus({ preventScroll: true });
});

/** Show an error; an empty one hides the banner. */
export function problem(sentence) {
  write(bar.querySelector("span"), sentence);
  bar.hidden = !sentence;
}

/** Set the status line of a topic, such as "Reconnecting…"; an empty one removes it.  Only one topic is shown at a time. */
export function notice(line, topic = "connection") {
  notices.set(topic, line);
  write(calm, [...notices.values()].find(Boolean) ?? "");
}

const WORDS = {
  idle: "Not connected",
  connecting: "Connecting",
  live: "Live",
  waiting: "Reconnecting",
  absent: "Waiting",
  before: "Not started",
  paused: "Paused",
  over: "Ended",
  next: "Ended",
};

/** Show a state, one of `WORDS`, and its sentence if it is among these. */
export function showState(state, sentences) {
  const place = at("state");
  place.dataset.state = at("banners").dataset.state = state;
  write(place, t(WORDS[state]));
  notice(t(sentences[state] ?? ""));
}

/** Show the model of the server's offer. */
export function showModel(place, { model, demo }) {
  const name = element("strong", { textContent: model });
  const sentence = t(demo ? "Translated by {model}, a small demo model that makes mistakes." : "Translated by {model}.");
  const [before, behind] = sentence.split("{model}");
  place.replaceChildren(before, name, behind);
}
