"""What can be refused; every message is for the person who asked and names the way out."""

from __future__ import annotations

from collections.abc import Mapping


class Refused(Exception):
    """A verb did not do what was asked; nothing changed."""


class EmptyDataset(Refused):
    """No session would be in the dataset."""


class Erased(Refused):
    """Data of somebody was deleted from a dataset: nothing is made of it any more."""


class NameTaken(Refused):
    """A row of that name is there already; names are for ever, as lineage refers to them."""


class WrongState(Refused):
    """The row is not in a state in which the verb makes sense."""


class Mismatch(Refused):
    """A checkpoint reads or writes something else than the deployment it is meant for."""


class BadConfig(Refused):
    """Values that can't be trained with; `errors` maps each field to what is wrong with it."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__("; ".join(f"{field}: {error}" for field, error in self.errors.items()))
