// The state of the connection: a word in the header and, while waiting, a sentence below it.

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
 * @param {Record<string, string>} sentences sentences for some of them
 */
export function showState(state, sentences) {
  const place = document.getElementById("state");
  place.dataset.state = state;
  if (place.textContent !== WORDS[state]) place.textContent = WORDS[state];
  notice(sentences[state] ?? "");
}
