"""A clipboard for each page: the browser's own is one for all pages, and episodes would share it."""

from __future__ import annotations

import json

COPY = """(() => {
  const at = document.activeElement;
  if (at && typeof at.selectionStart === 'number')
    return at.type === 'password' ? '' : at.value.slice(at.selectionStart, at.selectionEnd);
  return String(getSelection());
})()"""
"""JavaScript that gives the selected text; "" where nothing is selected."""


def paste(text: str) -> str:
    """Return JavaScript that pastes `text` where the focus is, as the browser would.

    The page hears of it by a paste event with the text, and may prevent it.
    """
    return f"""(() => {{
  const text = {json.dumps(text)};
  const carried = new DataTransfer();
  carried.setData('text/plain', text);
  const heard = new ClipboardEvent('paste', {{
    clipboardData: carried, bubbles: true, cancelable: true, composed: true }});
  const at = document.activeElement || document.body;
  if (at.dispatchEvent(heard) && text) document.execCommand('insertText', false, text);
}})()"""
