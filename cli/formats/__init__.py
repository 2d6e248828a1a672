"""Reports of the verifier as other programs read them: SARIF, JUnit, annotations of GitHub, Markdown."""

from hitproof.cli.formats.findings import Finding, findings
from hitproof.cli.formats.github import github_annotations
from hitproof.cli.formats.junit import junit_xml
from hitproof.cli.formats.markdown import markdown_summary
from hitproof.cli.formats.sarif import sarif_log

__all__ = ["Finding", "findings", "github_annotations", "junit_xml", "markdown_summary", "sarif_log"]
