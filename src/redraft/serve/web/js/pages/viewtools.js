// View options: type size, which is remembered, full screen, and captions only.

import { button, press } from "../captions/elements.js";
import { t } from "../captions/words.js";

const SIZES = [0.7, 0.85, 1, 1.2, 1.5, 1.9, 2.4, 3];
const NAME = "redraft.size";
const root = document.documentElement;

/** Put the buttons into a toolbar; `resized` is called when the type size has changed, `only` says whether the page has
    anything else to hide. */
export function addViewTools(place, { resized, only = false }) {
  const smaller = button("A−", () => step(-1), { ariaLabel: `A−: ${t("Smaller captions")}` });
  const larger = button("A+", () => step(1), { ariaLabel: `A+: ${t("Larger captions")}` });
  place.append(smaller, larger);
  if (only) place.append(captionsOnly());
  if (document.fullscreenEnabled) place.append(fullScreen());

  let size = SIZES.indexOf(Number(localStorage.getItem(NAME)));
  if (size < 0) size = SIZES.indexOf(1);
  const show = () => {
    root.style.setProperty("--scale", SIZES[size]);
    smaller.setAttribute("aria-disabled", String(size === 0));
    larger.setAttribute("aria-disabled", String(size === SIZES.length - 1));
    resized();
  };
  function step(by) {
    size = Math.min(Math.max(size + by, 0), SIZES.length - 1);
    localStorage.setItem(NAME, SIZES[size]);
    show();
  }
  show();
}

/** Hides everything but captions; Escape shows it again. */
function captionsOnly() {
  const toggle = (only) => {
    root.toggleAttribute("data-only", only);
    made.textContent = only ? "Show controls" : "Captions only";
  };
  const made = button("", () => toggle(!root.hasAttribute("data-only")));
  addEventListener("keydown", ({ key }) => key === "Escape" && root.hasAttribute("data-only") && toggle(false));
  toggle(false);
  return made;
}

function fullScreen() {
  const toggle = () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());
  const made = button(t("Full screen"), toggle, { ariaPressed: "false" });
  document.addEventListener("fullscreenchange", () => press(made, Boolean(document.fullscreenElement)));
  return made;
}
