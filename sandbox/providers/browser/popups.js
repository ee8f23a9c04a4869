// No windows beside the page: drop-down lists become part of it, pickers of dates and colours stay shut.
//
// The browser's own list is a window of its own: no screenshot has it, and a page whose frames are
// asked for one by one waits for that window's frames for ever. Here the list is part of the page: same
// options, same events, by mouse and by keys. Typing a name's first letters goes on as before, and
// a date can be typed; a colour field has no other way in, and can't be set by hand here.
(() => {
  if (typeof document === "undefined") return;  // a worker
  let open = null;  // {select, list, items, at}

  const dropdown = (node) => {
    const select = node instanceof Element ? node.closest("select") : null;
    return select && !select.multiple && select.size <= 1 && !select.disabled ? select : null;
  };

  const PICKERS = ["date", "datetime-local", "time", "month", "week", "color"];
  const picker = (node) => node instanceof HTMLInputElement && PICKERS.includes(node.type);

  const close = () => {
    if (open) open.list.remove();
    open = null;
  };

  const choose = (at) => {
    const {select, items} = open;
    const option = items[at] && items[at].option;
    if (!option || option.disabled) return;
    close();
    if (select.selectedIndex === option.index) return;
    select.selectedIndex = option.index;
    select.dispatchEvent(new Event("input", {bubbles: true, composed: true}));
    select.dispatchEvent(new Event("change", {bubbles: true}));
  };

  const mark = (at) => {
    open.at = Math.max(0, Math.min(open.items.length - 1, at));
    open.items.forEach(({row}, n) => {
      row.style.background = n === open.at ? "#1a73e8" : "transparent";
      row.style.color = n === open.at ? "#fff" : "";
      row.setAttribute("aria-selected", String(n === open.at));
    });
    open.items[open.at].row.scrollIntoView({block: "nearest"});
  };

  const show = (select) => {
    close();
    const options = [...select.options].filter((option) => !option.hidden);
    if (!options.length) return;
    const box = select.getBoundingClientRect(), style = getComputedStyle(select);
    const list = document.createElement("div");
    list.setAttribute("role", "listbox");
    const below = innerHeight - box.bottom, above = box.top;
    const up = below < 120 && above > below;
    Object.assign(list.style, {
      position: "fixed", zIndex: 2147483647, left: `${Math.max(0, box.left)}px`,
      minWidth: `${box.width}px`, maxHeight: `${Math.max(40, (up ? above : below) - 4)}px`,
      overflowY: "auto", background: "#fff", color: "#111", border: "1px solid #767676",
      boxSizing: "border-box", font: style.font, cursor: "default", textAlign: "left",
      ...(up ? {bottom: `${innerHeight - box.top}px`} : {top: `${box.bottom}px`}),
    });
    const items = options.map((option) => {
      const row = document.createElement("div");
      row.setAttribute("role", "option");
      row.textContent = option.label || option.text;
      Object.assign(row.style, {padding: "1px 6px", whiteSpace: "nowrap", opacity: option.disabled ? .5 : 1});
      list.append(row);
      return {row, option};
    });
    (document.body || document.documentElement).append(list);
    open = {select, list, items, at: 0};
    mark(items.findIndex(({option}) => option.selected));
  };

  const inside = (event) => open && event.target instanceof Node && open.list.contains(event.target);

  addEventListener("mousedown", (event) => {
    if (inside(event)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    const select = event.button === 0 ? dropdown(event.target) : null;
    const again = open && open.select === select;
    close();
    if (!select) return;
    event.preventDefault();  // the browser's own list stays away, and so would the focus
    select.focus();
    if (!again) show(select);
  }, true);

  addEventListener("click", (event) => {
    if (picker(event.target)) event.preventDefault();  // the focus came with the press
    if (!inside(event)) return;
    event.stopImmediatePropagation();
    choose(open.items.findIndex(({row}) => row === event.target));
  }, true);

  addEventListener("keydown", (event) => {
    const color = event.target instanceof HTMLInputElement && event.target.type === "color";
    if (picker(event.target) && (event.key === "F4" || (event.altKey && event.key === "ArrowDown")
      || event.key === " " || (color && event.key === "Enter"))) event.preventDefault();
    const select = dropdown(event.target);
    if (!select) return;
    const opens = [" ", "Enter", "F4"].includes(event.key)
      || (event.altKey && ["ArrowDown", "ArrowUp"].includes(event.key));
    if (open) {
      const step = {ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -1e6, End: 1e6}[event.key];
      if (step) mark(open.at + step);
      else if (event.key === "Enter" || event.key === " ") choose(open.at);
      else if (event.key !== "Escape" && event.key !== "Tab") return;
      else close();
      if (event.key !== "Tab") event.preventDefault();
    } else if (opens) {
      event.preventDefault();
      show(select);
    }
  }, true);

  addEventListener("blur", (event) => { if (open && event.target === open.select) close(); }, true);
  addEventListener("resize", close);
  addEventListener("scroll", (event) => { if (open && !open.list.contains(event.target)) close(); }, true);

  HTMLSelectElement.prototype.showPicker = function showPicker() { if (dropdown(this)) show(this); };
  const native = HTMLInputElement.prototype.showPicker;
  HTMLInputElement.prototype.showPicker = function showPicker() {
    if (!picker(this)) native.call(this);
  };
})();
