"""Who holds which bytes of the cache: its memory, its steps and what stands between them."""
