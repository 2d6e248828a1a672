"""The gate that adapters share: what a framework tells of its blocks and pages, judged by the rulebook."""

from hitproof.integrations.gate.gate import BlockGate
from hitproof.integrations.gate.gated import Gated
from hitproof.integrations.gate.groups import GroupBlocks, gate_profile
from hitproof.integrations.gate.measuring import Measure, Verify
from hitproof.integrations.gate.page_answers import PageOpened, PageRefused
from hitproof.integrations.gate.pages import PageSeal

__all__ = [
    "BlockGate",
    "Gated",
    "GroupBlocks",
    "Measure",
    "PageOpened",
    "PageRefused",
    "PageSeal",
    "Verify",
    "gate_profile",
]
