"""Which tensors of which layer's cache are which group's rows, and a cache made anew of nothing but such rows."""

from hitproof.integrations.transformers.state.layout import NotHeldError, RowLayout
from hitproof.integrations.transformers.state.profile import profile_of
from hitproof.integrations.transformers.state.state_map import StateMap

__all__ = ["NotHeldError", "RowLayout", "StateMap", "profile_of"]
