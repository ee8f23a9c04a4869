// Verbs of the server: JSON in, JSON out.

// Signing in again in another tab changes the token: the cookie has the new one, this page the old.
export const freshCsrf = () => /(?:^|; )csrftoken=([^;]+)/.exec(document.cookie)?.[1];
export const csrf = () => freshCsrf() ?? JSON.parse(document.body.getAttribute("hx-headers"))["x-csrftoken"];

const WITHIN_MS = 60_000; // a desktop that does not answer is given up sooner

/** POST `body`; resolves to {ok, error, message, …} also when the server refuses or is away. */
export async function post(url, body, { keepalive = false } = {}) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST",
      keepalive,
      headers: { "content-type": "application/json", "x-csrftoken": csrf() },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(WITHIN_MS),
    });
  } catch {
    return { ok: false, status: 0, error: "Offline", message: "The server can't be reached. If this was not done, try again." };
  }
  try {
    return { status: response.status, ...(await response.json()) };
  } catch {
    return { ok: false, status: response.status, error: "Broken", message: `The server answered ${response.status}.` };
  }
}

export function toast(text, level = "info") {
  dispatchEvent(new CustomEvent("tandem:toast", { detail: { text, level } }));
}

/** Return the JSON of a `json_script` block, or `otherwise`. */
export function readJson(id, otherwise) {
  const block = document.getElementById(id);
  return block ? JSON.parse(block.textContent) : otherwise;
}
