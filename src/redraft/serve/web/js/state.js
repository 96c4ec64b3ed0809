// How a connection stands: a word in the header, and a sentence below it where somebody waits.

import { notice } from "./problem.js";

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

/**
 * @param {string} state one of the words above
 * @param {Record<string, string>} sentences what to say of some of them
 */
export function showState(state, sentences) {
  const place = document.getElementById("state");
  place.dataset.state = state;
  if (place.textContent !== WORDS[state]) place.textContent = WORDS[state];
  notice(sentences[state] ?? "");
}
