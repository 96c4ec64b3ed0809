// Lets the user choose a translation, by pointer or keyboard.

const CELLS = ".cell:not(.source)";

/**
 * @param {HTMLElement} rows of `Captions`
 * @param {(caption: {utterance: string, speaker?: string, language: string, text: string, final: boolean, unseen: boolean}) => void} chosen
 * @returns {() => void} ends it
 */
export function choose(rows, chosen) {
  const reach = () => {
    for (const cell of rows.querySelectorAll(`${CELLS}:not([tabindex])`)) {
      cell.tabIndex = 0;
      cell.setAttribute("aria-description", "Press Enter to hide or correct it.");
    }
  };
  const take = ({ target: part }) => {
    const cell = part.closest(CELLS);
    if (!cell) return;
    const { dataset, classList, textContent: text } = cell;
    const { utterance, speaker } = cell.parentElement.dataset;
    chosen({ utterance, speaker, language: dataset.language, text, final: classList.contains("final"), unseen: classList.contains("unseen") });
  };
  const press = (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault(); // the space bar would scroll
    take(event);
  };
  const growing = new MutationObserver(reach);
  growing.observe(rows, { childList: true });
  rows.addEventListener("click", take);
  rows.addEventListener("keydown", press);
  reach();
  return () => {
    growing.disconnect();
    rows.removeEventListener("click", take);
    rows.removeEventListener("keydown", press);
    for (const cell of rows.querySelectorAll(CELLS)) for (const name of ["tabindex", "aria-description"]) cell.removeAttribute(name);
  };
}
