// A button that copies an address.

/**
 * @param {() => string} address returns the address
 * @param {string} text name of the address
 */
export function copyButton(address, text) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  button.setAttribute("aria-label", `Copy the link: ${text}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(address());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return button;
}
