// Keeps the screen on while captions are read: phones turn it off after half a minute.

/** @param {() => void} cannot called where the browser offers no way, as on pages without https */
export function stayAwake(cannot) {
  if (!navigator.wakeLock) {
    cannot();
    return;
  }
  // The system may refuse, to save power; a page that was hidden has lost it.
  const ask = () => document.visibilityState === "visible" && navigator.wakeLock.request("screen").catch(() => {});
  document.addEventListener("visibilitychange", ask);
  ask();
}
