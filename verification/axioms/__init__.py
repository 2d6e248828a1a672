"""What holds of models, bytes and events, written from papers and never from a rulebook."""

__all__: list[str] = []
