"""Making tasks: GUI-General from web apps, GUI-Browsing from linked pages (UI-TARS-2, section 2.5).

What a model proposes is never believed: a task is kept only after it has been done, or its answer
found, by a program; everything that was dropped is listed with its reason.
"""
