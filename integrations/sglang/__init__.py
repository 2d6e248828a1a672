"""SGLang: a radix-cache backend that gates device hits, and a storage backend whose pages are sealed."""

from hitproof.integrations.sglang.settings import BACKEND
from hitproof.integrations.sglang.versions import SUPPORTED, require_supported

__all__ = ["BACKEND", "SUPPORTED", "require_supported"]
