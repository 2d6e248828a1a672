"""Pages of LMCache in a folder, judged when they come back; torch and lmcache are loaded with `storage` alone."""

from hitproof.integrations.lmcache.versions import SUPPORTED, check_version

__all__ = ["SUPPORTED", "check_version"]
