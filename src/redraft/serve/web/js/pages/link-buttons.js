// Buttons for a link: one copies it, the other shows it as a QR code, for phones in the room.

import { button, element } from "../captions/elements.js";
import { t } from "../captions/words.js";

const HERE_ONLY = "This address works on this computer only. For other devices, open this page at the address that they can reach.";
const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

/** A button that copies the link that `address` returns, which `text` names. */
export function copyButton(address, text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(address());
      made.textContent = "Copied";
    } catch {
      made.textContent = "Not allowed";
    }
    setTimeout(() => (made.textContent = "Copy"), 2000);
  };
  const made = button("Copy", copy, { ariaLabel: `Copy the link: ${text}` });
  return made;
}

/** A button that shows the code of the link that `address` returns. */
export const qrButton = (address) => button(t("QR code"), () => show(address()));

function show(address) {
  const dialog = element(
    "dialog",
    { className: "qr", ariaLabel: "QR code of the link" },
    element("img", { src: `v1/qr?link=${encodeURIComponent(address)}`, alt: `QR code of ${address}`, width: 300, height: 300 }),
    element("p", { className: "address", textContent: address }),
    element("p", { className: "here", textContent: HERE_ONLY, hidden: !LOOPBACK.test(new URL(address).hostname) }),
    button(t("Close"), () => dialog.close(), { autofocus: true }),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // a click on the backdrop
  document.body.append(dialog);
  dialog.showModal();
}
