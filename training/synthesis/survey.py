"""Looking at a site through a page: what can be reached, what can be done there, what is not worth it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.provider import ActionFailed, Desktop
from trajectory import Navigate

MAX_PAGES = 24
MAX_LINKS = 12

FORMS_JS = """(() => {
  const label = field => (field.labels && field.labels[0] ? field.labels[0].innerText : field.name).trim();
  const forms = [...document.forms].map(form => {
    const fields = [], groups = {};
    for (const field of form.elements) {
      if (field.type === 'radio') {
        const legend = field.closest('fieldset')?.querySelector('legend');
        const group = groups[field.name] ??= {label: (legend ? legend.innerText : field.name).trim(),
          type: 'choice', name: field.name, value: '', options: []};
        if (!group.options.length) fields.push(group);
        group.options.push(label(field));
        if (field.checked) group.value = label(field);
      } else if (field.name && ['text', 'password', 'number', 'email', 'textarea'].includes(field.type)) {
        fields.push({label: label(field), type: field.type, name: field.name, value: field.value});
      }
    }
    const button = form.querySelector('button, input[type=submit]');
    return {fields, submit: button ? (button.innerText || button.value).trim() : ''};
  });
  return {
    title: document.title, heading: (document.querySelector('h1')?.innerText || '').trim(), forms,
    links: [...document.links].filter(a => a.origin === location.origin).map(a => a.innerText.trim())
      .filter((name, at, all) => name && all.indexOf(name) === at),
    address: location.pathname, words: document.body.innerText.trim().split(/\\s+/).length,
  };
})()"""


@dataclass(frozen=True, slots=True)
class Form:
    """One form: its fields by label (text ones, and choices with their options), and its button."""

    fields: tuple[Mapping[str, Any], ...]
    submit: str


@dataclass(frozen=True, slots=True)
class Surveyed:
    """One page: `path` are the links that lead to it from the site's first page."""

    path: tuple[str, ...]
    title: str
    heading: str
    forms: tuple[Form, ...]
    links: tuple[str, ...]
    words: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """Something that was left out, and why."""

    what: str
    reason: str


def survey(
    desktop: Desktop, url: str, *, epoch: int, max_pages: int = MAX_PAGES
) -> tuple[list[Surveyed], list[Dropped]]:
    """Follow the links of the site at `url`, breadth first, and return (pages, what was left out).

    Left out are pages that can't be opened, that want a password, or that are empty; a site without any
    form is left out whole: there is nothing to do on it that could be checked.
    """
    pages: list[Surveyed] = []
    dropped: list[Dropped] = []
    seen: set[str] = set()
    queue: list[tuple[str, ...]] = [()]
    while queue and len(pages) < max_pages:
        path = queue.pop(0)
        named = " > ".join(path) or "the first page"
        try:
            found = visit(desktop, url, path, epoch=epoch)
        except ActionFailed as error:
            dropped.append(Dropped(named, f"can't be opened: {error}"))
            continue
        if found["address"] in seen:
            continue
        seen.add(found["address"])
        page = _page(path, found)
        if any(field["type"] == "password" for form in page.forms for field in form.fields):
            dropped.append(Dropped(named, "wants a password"))
            continue
        if page.words < 3:
            dropped.append(Dropped(named, "is empty"))
            continue
        pages.append(page)
        queue += [(*path, link) for link in page.links[:MAX_LINKS] if len(path) < 2]
    if not any(page.forms for page in pages):
        dropped.append(Dropped(url, "has no form: only static pages"))
        return [], dropped
    return pages, dropped


def visit(desktop: Desktop, url: str, path: Sequence[str], *, epoch: int) -> dict[str, Any]:
    """Open `url`, click the links of `path` by their names, and return what the page has."""

    def look(script: str) -> Any:
        return desktop.evaluate(script)

    action = Navigate(url)
    desktop.perform(action, epoch=epoch, action_id=f"survey-{uuid.uuid4().hex}")
    for name in path:
        target = look(
            "[...document.links].find(a => a.innerText.trim() === "
            + json.dumps(name)
            + ")?.href || ''"
        )
        if not target:
            raise ActionFailed(f"there is no link {name!r}")
        desktop.perform(Navigate(str(target)), epoch=epoch, action_id=f"survey-{uuid.uuid4().hex}")
    found: dict[str, Any] = look(FORMS_JS)
    return found


def _page(path: tuple[str, ...], found: Mapping[str, Any]) -> Surveyed:
    return Surveyed(
        path=path,
        title=str(found["title"]),
        heading=str(found["heading"]),
        forms=tuple(Form(tuple(form["fields"]), form["submit"]) for form in found["forms"]),
        links=tuple(found["links"]),
        words=int(found["words"]),
    )
