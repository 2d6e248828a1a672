"""Request traces: real ones read as they are, synthetic ones drawn after published statistics."""

from hitproof.engine.trace.line_format import TraceRequest
from hitproof.engine.trace.request_trace import read_trace, write_trace
from hitproof.engine.trace.synth import CONVERSATION, TraceStatistics, synthesize

__all__ = ["CONVERSATION", "TraceRequest", "TraceStatistics", "read_trace", "synthesize", "write_trace"]
