"""Tasks that join browser, files and shell: fetch something from a page, work on it, answer.

Each exists twice with the same data: "gui" wants it done by mouse and keyboard alone, "sdk" lets the
actor use the shell on the file that the browser has saved (UI-TARS-2, GUI-SDK: a shared file system).
"""
