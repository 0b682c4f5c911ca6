// Talking to the server. What it refuses, it explains: `error.message` is for people,
// `error.kind` for the page.

export class ApiError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("unreachable", "The server does not answer. Is it still running?");
  }
  const body = await response.json().catch(() => ({}));
  if (!response.ok) {
    throw new ApiError(body.kind ?? "unknown", body.message ?? `The server answered ${response.status}.`);
  }
  return body;
}

export const get = (path, signal) => request(path, { signal });

export const post = (path, body = {}) =>
  request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
