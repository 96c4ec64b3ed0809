// Banners below the header: what went wrong, until it is dismissed, and one line about what the page is doing.

const bar = document.getElementById("problem");
const calm = document.getElementById("notice");
/** Topic -> its line; the connection comes before all others. */
const notices = new Map([["connection", ""]]);
bar.querySelector("button").addEventListener("click", () => problem(""));

/** Show a sentence; an empty one hides the bar. */
export function problem(sentence) {
  write(bar.querySelector("span"), sentence);
  bar.hidden = !sentence;
}

/**
 * Show one line about a topic in place of the one before; an empty one takes it away.  Of several topics one is shown.
 *
 * @param {string} line such as "Reconnecting…"
 * @param {string} [topic]
 */
export function notice(line, topic = "connection") {
  notices.set(topic, line);
  write(calm, [...notices.values()].find(Boolean) ?? "");
}

/** Screen readers read what is written: the same is not written again. */
function write(element, sentence) {
  if (element.textContent !== sentence) element.textContent = sentence;
}
