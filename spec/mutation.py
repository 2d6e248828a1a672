"""What became of the edits of a rulebook, as data: killed, redundant, refused, or survived, each with its place."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["EditFate", "Fate", "MutationReport"]

Fate = Literal["refused", "redundant", "killed", "dead", "survived"]
"""`refused`: the rulebook cannot be read or bound any more. `redundant`: it means the same. `killed`: a claim is
refuted, and the engine replayed its counterexample. `dead`: a rule that decided somewhere decides nowhere any more.
`survived`: none of these."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EditFate(_Model):
    """One edit of a rulebook, and what became of it.

    Args:
        id: The rule, and what was done to it.
        section: The part of the rulebook in which the rule stands.
        rule: Id of the rule, with the object where it is of one object alone.
        what: Whether something was dropped or turned into its opposite.
        change: The edit in words.
        place: `file:line:column` of the edit.
        by: The claim that was refuted.
        profile: The model for which it was.
        detail: The counterexample in a sentence, the reason of a refusal, or what was left undecided.
    """

    id: str
    section: str
    rule: str
    what: Literal["drop", "flip"]
    change: str
    place: str
    fate: Fate
    by: str = ""
    profile: str = ""
    detail: str = ""


class MutationReport(_Model):
    """All edits of a rulebook, or those that were asked for."""

    rulebook: str
    digest: str
    edits: list[EditFate]

    def count(self, fate: Fate) -> int:
        """How many edits met that fate."""
        return sum(edit.fate == fate for edit in self.edits)

    @property
    def survivors(self) -> list[EditFate]:
        """Edits that nothing noticed."""
        return [edit for edit in self.edits if edit.fate == "survived"]
