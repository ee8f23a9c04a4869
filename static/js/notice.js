// What the annotator must know above the proposals: a refusal, or that the session is lost here.

const box = () => document.getElementById("notice");

export function notice(text, level = "warn") {
  box().className = `notice ${level}`;
  box().textContent = text.charAt(0).toUpperCase() + text.slice(1);
  box().hidden = false;
}

export function clearNotice() {
  box().hidden = true;
}

/** The session goes on elsewhere, or nowhere; taking it up here again makes the other page old. */
export function lostNotice(text) {
  notice(`${text} `, "bad");
  const button = document.createElement("button");
  button.className = "button small";
  button.textContent = "Go on here";
  button.setAttribute("form", "resume");
  box().append(button);
}
