"""Policies on the running path: admission, execution, order of waiting, pools and early demotion by the rules."""

from hitproof.engine.policy.admission import PolicyEngine
from hitproof.engine.policy.demotion import EarlyDemotion
from hitproof.engine.policy.pools import Ledger
from hitproof.engine.policy.waiting import Waiter, WaitingOrder

__all__ = ["EarlyDemotion", "Ledger", "PolicyEngine", "Waiter", "WaitingOrder"]
