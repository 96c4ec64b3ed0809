// Buttons for a link: one copies it, the other shows it as a QR code, for phones in the room.

import { t } from "../captions/words.js";

const HERE_ONLY = "This address works on this computer only. For other devices, open this page at the address that they can reach.";
const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

/**
 * A button that copies the link.
 *
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

/**
 * A button that shows the code.
 *
 * @param {() => string} address returns the link
 */
export function qrButton(address) {
  const button = element("button", { type: "button", textContent: t("QR code") });
  button.addEventListener("click", () => show(address()));
  return button;
}

function show(address) {
  const dialog = element("dialog", { className: "qr", ariaLabel: "QR code of the link" });
  const close = element("button", { type: "button", textContent: t("Close"), autofocus: true });
  dialog.append(
    element("img", { src: `v1/qr?link=${encodeURIComponent(address)}`, alt: `QR code of ${address}`, width: 300, height: 300 }),
    element("p", { className: "address", textContent: address }),
    element("p", { className: "here", textContent: HERE_ONLY, hidden: !LOOPBACK.test(new URL(address).hostname) }),
    close,
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // a click on the backdrop
  document.body.append(dialog);
  dialog.showModal();
}

const element = (tag, properties) => Object.assign(document.createElement(tag), properties);
