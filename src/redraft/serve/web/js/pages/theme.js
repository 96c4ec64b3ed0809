// Dark or light: the system's setting unless chosen here.  Not a module, so that it runs before anything is drawn.
"use strict";
{
  const NAME = "redraft.theme";
  const root = document.documentElement;
  const chosen = localStorage.getItem(NAME);
  if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
    const show = () => button.setAttribute("aria-checked", String(isDark()));
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      localStorage.setItem(NAME, root.dataset.theme);
      show();
    });
    system.addEventListener("change", show);
    show();
  });
}
