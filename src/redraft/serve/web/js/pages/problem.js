// Banners below the header: an error, until it is dismissed, and a status line.

const bar = document.getElementById("problem");
const calm = document.getElementById("notice");
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

/**
 * Set the status line of a topic; an empty one removes it.  Only one topic is shown at a time.
 *
 * @param {string} line such as "Reconnecting…"
 * @param {string} [topic]
 */
export function notice(line, topic = "connection") {
  notices.set(topic, line);
  write(calm, [...notices.values()].find(Boolean) ?? "");
}

/** Do not rewrite equal text: screen readers would announce it again. */
function write(element, sentence) {
  if (element.textContent !== sentence) element.textContent = sentence;
}
