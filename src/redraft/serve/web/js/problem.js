// What went wrong, in a bar below the header.

const bar = document.getElementById("problem");
bar.querySelector("button").addEventListener("click", () => problem(""));

/** Show a sentence; none hides the bar. */
export function problem(sentence) {
  bar.querySelector("span").textContent = sentence;
  bar.hidden = !sentence;
}
