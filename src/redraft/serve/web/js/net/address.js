// Where the server is.

/** The address of a websocket of this server. */
export function address(path) {
  const url = new URL(path, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  return url;
}
