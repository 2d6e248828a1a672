"""The shipped rulebooks, repair declarations and profiles, and the loader that reads them."""

__all__: list[str] = []
