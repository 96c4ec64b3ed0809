"""HTTP and websockets: the API, the pages, and other services' APIs."""
