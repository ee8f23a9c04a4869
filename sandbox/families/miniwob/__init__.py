"""MiniWoB++: its 128 small web tasks, with an oracle for 124 of them.

Without one are the three flight pages, which are whole booking sites, and drag-cube, which turns on
with its own swing after each drag. The five pages of the package that have no id in MiniWoB++ (see
`pages.NO_ID`) are left out. In click-pie-nodelay the page takes no click on its first item: on a seed
that asks for it the oracle says that there is no way.
"""

from sandbox.families.miniwob.family import FAMILY

__all__ = ["FAMILY"]
