// What can be named on the page in front: a list in reading order, boxes in pixels of the screen.
// Called with {screenWidth}: the screen's width in real pixels, or 0 where nobody knows it.
(function (options) {
  const MAX_NAME = 60;
  const ROLES = {
    button: "button", link: "link", checkbox: "checkbox", radio: "radio", tab: "tab",
    textbox: "textbox", searchbox: "textbox", combobox: "combobox", option: "option",
    menuitem: "menuitem", menuitemcheckbox: "checkbox", menuitemradio: "radio",
    switch: "checkbox", slider: "slider", spinbutton: "spinbutton", treeitem: "treeitem",
    heading: "heading", img: "image",
  };
  const INPUTS = {
    button: "button", submit: "button", reset: "button", image: "button", file: "button",
    checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton",
  };
  const TAGS = {
    BUTTON: "button", TEXTAREA: "textarea", SUMMARY: "button", IMG: "image", OPTION: "option",
    H1: "heading", H2: "heading", H3: "heading", H4: "heading", H5: "heading", H6: "heading",
  };
  const SHAPES = { rect: "rectangle", circle: "circle", ellipse: "ellipse", polygon: "polygon" };
  const WHOLE = new Set([
    "button", "link", "tab", "option", "menuitem", "checkbox", "radio", "combobox", "textbox",
    "textarea", "slider", "spinbutton", "image", "heading", "shape",
  ]);
  const COLOURS = {
    "0,0,0": "black", "255,255,255": "white", "255,0,0": "red", "0,0,255": "blue",
    "0,128,0": "green", "0,255,0": "lime", "255,255,0": "yellow", "0,255,255": "cyan",
    "255,0,255": "magenta", "128,0,128": "purple", "255,165,0": "orange", "255,192,203": "pink",
    "128,128,128": "grey", "128,128,0": "olive", "128,0,0": "maroon", "0,0,128": "navy",
    "0,128,128": "teal", "192,192,192": "silver", "165,42,42": "brown", "255,215,0": "gold",
  };

  const clean = (text) => (text || "").replace(/\s+/g, " ").trim();
  const cut = (text) => (text.length > MAX_NAME ? text.slice(0, MAX_NAME - 1) + "…" : text);

  function colour(css) {
    const part = /rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)/.exec(css);
    if (!part || part[4] === "0") return "";
    const hex = part.slice(1, 4).map((n) => Number(n).toString(16).padStart(2, "0")).join("");
    return COLOURS[part.slice(1, 4).join(",")] || "#" + hex;
  }

  // Page zoom changes devicePixelRatio but not outerWidth, a display's own scale changes both.
  const ratio = window.devicePixelRatio || 1;
  const scale = options.screenWidth ? options.screenWidth / window.screen.width : ratio;
  const side = (window.outerWidth * scale - window.innerWidth * ratio) / 2;
  const originX = window.screenX * scale + Math.max(0, side);
  const originY = window.screenY * scale
    + Math.max(0, window.outerHeight * scale - window.innerHeight * ratio - Math.max(0, side));

  function hidden(el) {
    if (el.getAttribute("aria-hidden") === "true") return true;
    return el.checkVisibility && !el.checkVisibility({ visibilityProperty: false, opacityProperty: true });
  }

  // The part of the first line that is in the viewport; null where nothing of it can be seen.
  function seen(rects) {
    for (const rect of rects) {
      const left = Math.max(0, rect.left);
      const top = Math.max(0, rect.top);
      const width = Math.min(window.innerWidth, rect.right) - left;
      const height = Math.min(window.innerHeight, rect.bottom) - top;
      if (width >= 2 && height >= 2) return { left, top, width, height };
    }
    return null;
  }

  // Whether the pixel in the middle belongs to `el`: something else may lie over it.
  function onTop(el, rect) {
    let hit = document.elementFromPoint(rect.left + rect.width / 2, rect.top + rect.height / 2);
    while (hit && hit.shadowRoot) {
      const inner = hit.shadowRoot.elementFromPoint(
        rect.left + rect.width / 2, rect.top + rect.height / 2);
      if (!inner || inner === hit) break;
      hit = inner;
    }
    if (!hit) return false;
    return hit === el || el.contains(hit) || hit.contains(el)
      || (el.labels && Array.from(el.labels).some((label) => label.contains(hit)))
      || getComputedStyle(el).pointerEvents === "none";
  }

  // The part of `rect` whose middle can be clicked: all of it, else a half or a quarter; or null.
  function clickable(el, rect) {
    const { left, top } = rect;
    const width = rect.width / 2;
    const height = rect.height / 2;
    const parts = [
      rect,
      { left, top, width, height: rect.height },
      { left: left + width, top, width, height: rect.height },
      { left, top, width: rect.width, height },
      { left, top: top + height, width: rect.width, height },
      { left, top, width, height },
      { left: left + width, top, width, height },
      { left, top: top + height, width, height },
      { left: left + width, top: top + height, width, height },
    ];
    return parts.find((part) => onTop(el, part)) || null;
  }

  function roleOf(el, style) {
    const explicit = ROLES[(el.getAttribute("role") || "").split(" ")[0]];
    if (explicit) return explicit;
    if (el.tagName === "INPUT") return el.type === "hidden" ? "" : INPUTS[el.type] || "textbox";
    if (el.tagName === "SELECT") return el.size > 1 || el.multiple ? "" : "combobox";
    if (el.tagName === "OPTION" && el.closest("select").size <= 1 && !el.closest("select").multiple) return "";
    if (TAGS[el.tagName]) return TAGS[el.tagName];
    if (el.tagName === "A" && el.hasAttribute("href")) return "link";
    if (el.isContentEditable && !(el.parentElement && el.parentElement.isContentEditable)) return "textarea";
    if (SHAPES[el.tagName]) return "shape";
    if (el.tagName === "LABEL") return "";
    // Pages without roles: what invites the pointer is a button, or a link where it looks like one.
    const above = el.parentElement && getComputedStyle(el.parentElement).cursor === "pointer";
    const invites = el.hasAttribute("onclick") || (style.cursor === "pointer" && !above);
    if (invites && el !== document.body) {
      return style.textDecorationLine.includes("underline") ? "link" : "button";
    }
    const background = colour(style.backgroundColor);
    if (background && !el.firstElementChild && !clean(el.textContent)
        && el.clientWidth >= 8 && el.clientHeight >= 8
        && background !== colour(getComputedStyle(el.parentElement || el).backgroundColor)
        && (style.display.startsWith("inline") || el.tagName !== "DIV")) return "shape";
    return "";
  }

  const labels = new Set(); // nodes whose text is already the name of a field

  function textBefore(el) {
    for (let node = el.previousSibling; node; node = node.previousSibling) {
      if (node.nodeType === Node.TEXT_NODE && clean(node.data)) {
        labels.add(node);
        return clean(node.data);
      }
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      if (!["LABEL", "SPAN", "B", "STRONG", "TH", "DT"].includes(node.tagName)) return "";
      if (node.querySelector("input, button, select, textarea, a")) return "";
      labels.add(node);
      return clean(node.textContent);
    }
    return "";
  }

  function nameOf(el, role, style) {
    const by = (el.getAttribute("aria-labelledby") || "").split(" ")
      .map((id) => id && document.getElementById(id)).filter(Boolean);
    const aria = clean(el.getAttribute("aria-label")) || clean(by.map((n) => n.textContent).join(" "));
    if (aria && role !== "tab") return aria;
    if (role === "shape") {
      const drawn = SHAPES[el.tagName];
      return `${colour(drawn ? style.fill : style.backgroundColor)} ${drawn || "box"}`.trim();
    }
    if (el.tagName === "INPUT" && role === "button") return clean(el.value) || clean(el.title) || el.type;
    if (el.labels && el.labels.length) {
      for (const label of el.labels) labels.add(label);
      const own = clean(Array.from(el.labels, (label) => {
        const copy = label.cloneNode(true);
        copy.querySelectorAll("input, select, textarea, button").forEach((n) => n.remove());
        return copy.textContent;
      }).join(" "));
      if (own) return own;
    }
    if (["textbox", "textarea", "combobox", "slider", "spinbutton", "checkbox", "radio"].includes(role)) {
      return clean(el.placeholder) || clean(el.title) || textBefore(el).replace(/\s*[:*]+$/, "");
    }
    return clean(el.innerText || el.textContent) || clean(el.alt) || clean(el.title)
      || clean((el.querySelector("img[alt]") || {}).alt);
  }

  function valueOf(el, role) {
    const parts = [];
    if (el.tagName === "INPUT" && el.type === "password") parts.push("•".repeat(el.value.length));
    else if (["textbox", "slider", "spinbutton"].includes(role) && "value" in el) parts.push(clean(String(el.value)));
    else if (el.tagName === "TEXTAREA") parts.push(clean(el.value));
    else if (el.isContentEditable && role === "textarea") parts.push(clean(el.innerText));
    else if (el.tagName === "SELECT") parts.push(clean((el.selectedOptions[0] || {}).text));
    const aria = (name) => el.getAttribute("aria-" + name);
    if (el.checked || aria("checked") === "true") parts.push("checked");
    else if (aria("selected") === "true" && role !== "heading") parts.push("selected");
    else if (role === "option" && el.selected) parts.push("selected");
    else if (aria("expanded") === "true" && role !== "tab") parts.push("expanded");
    if (el.disabled) parts.push("disabled");
    return cut(parts.filter(Boolean).join(" "));
  }

  const found = [];

  function add(role, name, rect, value, focused) {
    found.push({
      role, name: cut(name), value, focused,
      box: [
        Math.round(originX + rect.left * ratio), Math.round(originY + rect.top * ratio),
        Math.max(1, Math.round(rect.width * ratio)), Math.max(1, Math.round(rect.height * ratio)),
      ],
      rect, order: found.length,
    });
  }

  function labelled(el, rect) {
    const label = el.labels && el.labels.length === 1 && el.labels[0].contains(el) ? el.labels[0] : null;
    const around = label && seen(label.getClientRects());
    if (!around) return rect;
    const left = Math.min(rect.left, around.left);
    const top = Math.min(rect.top, around.top);
    return {
      left, top,
      width: Math.max(rect.left + rect.width, around.left + around.width) - left,
      height: Math.max(rect.top + rect.height, around.top + around.height) - top,
    };
  }

  function visit(node) {
    if (node.nodeType === Node.TEXT_NODE) {
      if (clean(node.data)) texts.push(node);
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE && node.nodeType !== Node.DOCUMENT_FRAGMENT_NODE) return;
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD"].includes(node.tagName)) return;
      if (hidden(node)) return;
      const style = getComputedStyle(node);
      const role = roleOf(node, style);
      // Widget libraries mark whole panels as tabs or clickable: their controls count, not they.
      const panel = !["BUTTON", "A", "SELECT"].includes(node.tagName)
        && node.querySelector("button, input, select, textarea");
      if (role && !panel) {
        const rect = style.visibility === "visible" && seen(node.getClientRects());
        if (rect) {
          const name = nameOf(node, role, style);
          const box = clickable(node, ["checkbox", "radio"].includes(role) ? labelled(node, rect) : rect);
          if (box) add(role, name, box, valueOf(node, role), node === active);
        }
        if (WHOLE.has(role)) return;
      }
      if (node.shadowRoot) visit(node.shadowRoot);
    }
    for (const child of node.childNodes) visit(child);
  }

  let active = document.activeElement;
  while (active && active.shadowRoot && active.shadowRoot.activeElement) active = active.shadowRoot.activeElement;
  if (active === document.body) active = null;

  const texts = [];
  if (document.body) visit(document.body);
  for (const node of texts) {
    const parent = node.parentElement;
    if (!parent || labels.has(node) || Array.from(labels).some((label) => label.contains(node))) continue;
    if (getComputedStyle(parent).visibility !== "visible") continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const rect = seen(range.getClientRects());
    if (rect && onTop(parent, rect)) add("text", clean(node.data), rect, "", false);
  }

  // Reading order: rows from the top, each from the left.
  found.sort((a, b) => a.rect.top - b.rect.top || a.rect.left - b.rect.left || a.order - b.order);
  const rows = [];
  for (const item of found) {
    const row = rows[rows.length - 1];
    const middle = item.rect.top + item.rect.height / 2;
    if (row && middle < row.bottom && item.rect.height < 3 * row.height) row.items.push(item);
    else rows.push({ bottom: item.rect.top + item.rect.height, height: item.rect.height, items: [item] });
  }
  const ordered = rows.flatMap((row) =>
    row.items.sort((a, b) => a.rect.left - b.rect.left || a.order - b.order));
  return {
    url: location.href,
    origin: [originX, originY],
    ratio,
    elements: ordered.map(({ role, name, box, value, focused }) => ({ role, name, box, value, focused })),
  };
})
