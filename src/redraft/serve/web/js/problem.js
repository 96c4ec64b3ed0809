// What went wrong and what is being waited for, in bars below the header.

const bar = document.getElementById("problem");
const calm = document.getElementById("notice");
bar.querySelector("button").addEventListener("click", () => problem(""));

/** Show a sentence; none hides the bar. */
export function problem(sentence) {
  write(bar.querySelector("span"), sentence);
  bar.hidden = !sentence;
}

/** Say what is being waited for; nothing hides the bar. */
export function notice(sentence) {
  write(calm, sentence);
}

/** Screen readers read what is written: the same is not written again. */
function write(element, sentence) {
  if (element.textContent !== sentence) element.textContent = sentence;
}
