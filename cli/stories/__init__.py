"""Counterexamples as people use them: told in text, written as scenario files, diagrams and traces."""

from hitproof.cli.stories.files import write_stories
from hitproof.cli.stories.itf import itf
from hitproof.cli.stories.sequence import sequence_diagram
from hitproof.cli.stories.text import rule_lines, story_lines

__all__ = ["itf", "rule_lines", "sequence_diagram", "story_lines", "write_stories"]
