// What the theme leaves out for keyboards and screen readers.

function complete() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    // A wide table is scrolled by the arrow keys, if it can have the focus.
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
  // Landmarks are few and have names of their own; these are parts of others.
  for (const part of document.querySelectorAll(".md-code__nav, .md-nav--secondary .md-nav")) {
    part.role = "none";
    part.removeAttribute("aria-label");
    part.removeAttribute("aria-labelledby");
  }
}

new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
addEventListener("resize", complete);
complete();
