// Applies the chosen theme before the first paint (a classic script in <head>), and the toggle,
// the toasts and the menus once the page is there.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem("tandem.theme") || "system";

  function apply() {
    const theme = chosen();
    root.dataset.theme = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
    for (const button of document.querySelectorAll("[data-theme-choice]")) {
      button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
    }
  }

  apply();
  dark.addEventListener("change", apply);
  addEventListener("storage", apply);

  document.addEventListener("DOMContentLoaded", () => {
    apply();
    for (const toast of document.querySelectorAll(".toast.success, .toast.info")) {
      setTimeout(() => toast.remove(), 6000);
    }
  });

  document.addEventListener("click", (event) => {
    const choice = event.target.closest("[data-theme-choice]");
    if (choice) {
      localStorage.setItem("tandem.theme", choice.dataset.themeChoice);
      apply();
    }
    event.target.closest("[data-dismiss]")?.parentElement.remove();
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });

  // htmx swaps error pages' status away by default; say what happened instead of doing nothing.
  document.addEventListener("htmx:responseError", (event) => {
    window.dispatchEvent(new CustomEvent("tandem:toast", {
      detail: { level: "error", text: `The server answered ${event.detail.xhr.status}.` },
    }));
  });

  addEventListener("tandem:toast", (event) => {
    const { level = "info", text } = event.detail;
    const toast = document.createElement("div");
    toast.className = `toast ${level}`;
    toast.setAttribute("role", level === "error" ? "alert" : "status");
    const span = document.createElement("span");
    span.textContent = text;
    const close = document.createElement("button");
    close.dataset.dismiss = "";
    close.setAttribute("aria-label", "Dismiss");
    close.textContent = "✕";
    toast.append(span, close);
    document.getElementById("toasts").append(toast);
    setTimeout(() => toast.remove(), level === "error" ? 12000 : 5000);
  });
})();
