"""Every fault by its name: what caches do by design first, damage done on purpose last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hitproof.integrations.transformers.oracle.continued import CONTINUED
from hitproof.integrations.transformers.oracle.damaged import DAMAGED
from hitproof.integrations.transformers.oracle.fault import Fault
from hitproof.integrations.transformers.oracle.lost import LOST
from hitproof.integrations.transformers.oracle.others import OTHERS
from hitproof.spec.errors import UsageError

__all__ = ["FAULTS", "faults_of"]

FAULTS: Mapping[str, Fault] = {fault.id: fault for fault in (*CONTINUED, *LOST, *OTHERS, *DAMAGED)}


def faults_of(names: Sequence[str] | None) -> tuple[Fault, ...]:
    """The faults of these names, in the catalogue's order; all without names.

    Raises:
        UsageError: There is no such fault.
    """
    for name in names or ():
        if name not in FAULTS:
            raise UsageError("there is no such fault", got=name, expected=", ".join(FAULTS))
    return tuple(fault for fault in FAULTS.values() if not names or fault.id in names)
