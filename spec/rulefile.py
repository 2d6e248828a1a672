"""The shape of a rule file, as pydantic models: what may stand where, before any expression is read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "AdmissionDecl",
    "AssumptionDecl",
    "CheckDecl",
    "ChoosingDecl",
    "CounterDecl",
    "DemotionDecl",
    "DispositionDecl",
    "EffectDecl",
    "EveryObjectDecl",
    "ExecutionDecl",
    "FactDecl",
    "FlagDecl",
    "InvariantDecl",
    "JointDecl",
    "KeyDecl",
    "LeaseStepDecl",
    "LeasingDecl",
    "ObjectDecl",
    "OptionDecl",
    "PolicyDecl",
    "PoolDecl",
    "PrefillDecl",
    "ProcessStepDecl",
    "RecoveringDecl",
    "RepairFile",
    "ResumableDecl",
    "RetentionDecl",
    "RuleFile",
    "RulebookFile",
    "SeriesDecl",
    "SpanDecl",
    "ThresholdDecl",
    "TransitionDecl",
    "WaitingDecl",
]

LAYERS = ("identity", "block_integrity", "kernel_interface", "group_intersection", "hardware_alignment")
LEVELS = ("in_place", "intra_layer", "full_recompute")

Report = Literal["done", "failed", "source_lost", "transfer_failed", "moved", "ready", "nothing"]
Onward = Literal["go_on", "retry", "decide", "use", "recompute", "refuse"]
LeaseAction = Literal["pin", "note", "compare_epochs", "compare_forms", "compare_mapping", "fence", "unpin"]
Layer = Literal["identity", "block_integrity", "kernel_interface", "group_intersection", "hardware_alignment"]
Level = Literal["in_place", "intra_layer", "full_recompute"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
Expression = Annotated[str, Field(min_length=1, max_length=2000)] | int | bool
Sentence = Annotated[str, Field(min_length=1, max_length=500)]
Label = Annotated[str, Field(min_length=1, max_length=130)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FactDecl(_Shape):
    """A declared fact: its type or unit, its domain, its value in a faultless segment, its default in a profile."""

    type: str
    domain: tuple[int | float, int | float] | None = None
    healthy: Expression | float | list[Expression] | None = None
    default: int | bool | float | None = None
    because: Sentence | None = None


class CheckDecl(_Shape):
    """A named condition of one layer; `applies` is decided when the profile is bound."""

    id: Name
    layer: Layer
    require: Expression
    applies: Expression | None = None
    because: Sentence
    source: Sentence


class EffectDecl(_Shape):
    """Simultaneous changes of a segment's own facts; `renews` takes a new fingerprint of newly made bytes."""

    sets: dict[Name, Expression] = {}
    adds: dict[Name, Expression] = {}
    resets: dict[Name, Expression] = {}
    chooses: dict[Name, Expression] = {}
    renews: bool = False


class OptionDecl(EffectDecl):
    """A recovery option: which checks it mends, when, from what, by which repair, at which cost."""

    id: Name
    level: Level
    repair: Name
    joint: Name | None = None
    mends: list[Name] | Literal["all"]
    consumes: list[Name] = []
    applies: Expression | None = None
    when: Expression | None = None
    effects: list[Name] = []
    cost: Expression | None = None
    because: Sentence
    source: Sentence


class ResumableDecl(_Shape):
    """Lengths at which an object can resume: multiples of a constant, or a stored set of committed boundaries."""

    every: Expression | None = None
    stored: Expression | None = None


class DispositionDecl(_Shape):
    """What becomes of a refused entry: the first rule whose condition is surely true decides; else it is kept."""

    id: Name
    when: Expression
    then: Literal["keep", "purge", "quarantine"]
    because: Sentence
    source: Sentence


class ObjectDecl(_Shape):
    """One kind of cache object: its home form, facts, needs at a length, checks and recovery options."""

    form: Name
    pieces: Literal["span", "point"]
    title: Sentence
    source: Sentence
    mandatory: bool = True
    constants: dict[Name, int | bool] = {}
    facts: dict[Name, FactDecl | str] = {}
    healthy: dict[Name, Expression | list[Expression]] = {}
    domain: list[Expression] = []
    needs: dict[Name, Expression] = {}
    needed: Expression | None = None
    peers: dict[Name, Name | list[Name]] = {}
    resumable: Literal["any"] | ResumableDecl = "any"
    inherits: list[Name] | None = None
    checks: list[CheckDecl] = []
    recovery: list[OptionDecl] = []
    disposition: list[DispositionDecl] = []


class EveryObjectDecl(_Shape):
    """Checks, effects and options that every object inherits."""

    checks: list[CheckDecl] = []
    effects: dict[Name, EffectDecl] = {}
    check_sets: dict[Name, list[Name]] = {}
    recovery: list[OptionDecl] = []
    disposition: list[DispositionDecl] = []


class TransitionDecl(_Shape):
    """One event of the form machine; see the header of a transitions file for the keys."""

    id: Name
    from_: list[Name] = Field(alias="from")
    to: Name
    pins: Literal["unpinned", "exclusive", "any"]
    owner: Literal["sole", "any"] = "any"
    actor: Literal["manager", "writer"]
    objects: list[Name] | None = None
    donor: bool = False
    when: Expression | None = None
    takes: list[Name] = []
    sets: dict[Name, Expression] = {}
    forgets: list[Name] = []
    keeps_prefix: bool = False
    allocates: bool = False
    writes: bool = False
    moves: bool = False
    frees: bool = False
    key: Literal["publish", "clear", "keep"] = "keep"
    because: Sentence
    source: Sentence


class KeyDecl(_Shape):
    """What the key of a segment is made of in one tier, under which it is found there.

    `tokens` are the leading tokens that the key names, of a segment that ends at `length`. `fields` maps identity
    facts of the segment to what a request gives for them. A field in `begins` takes part only where the named fact,
    which the segment and the request both have, lies before the end of those tokens.
    """

    tokens: Expression
    fields: Annotated[dict[Name, Expression], Field(min_length=1)]
    begins: dict[Name, Name] = {}
    because: Sentence
    source: Sentence


class InvariantDecl(_Shape):
    """What the machine must never violate, over a pair of segments, a used segment, a lease or the run time."""

    id: Name
    check: Literal["separation", "static_graph", "check_to_use", "admission"]
    over: Literal["pair", "used", "lease", "runtime"]
    require: Expression
    because: Sentence
    source: Sentence


class AssumptionDecl(_Shape):
    """What the proofs assume of the environment; never of a segment, never a conclusion."""

    id: Literal["fingerprints_tell", "exclusive_allocator", "writers_tell"]
    about: Literal["environment"]
    because: Sentence


class PrefillDecl(_Shape):
    """Price of computing everything beyond the reused length, in microseconds."""

    cost: Expression
    because: Sentence
    source: Sentence


class ChoosingDecl(_Shape):
    """What makes one plan better than another: the first part in which two sound plans differ decides."""

    order: list[Literal["price", "longer_length", "lower_level", "fewer_steps", "option_id"]]
    because: Sentence
    source: Sentence


class JointDecl(_Shape):
    """A repair that serves several groups at once and is paid once a plan, at its dearest."""

    id: Name
    level: Level
    because: Sentence
    source: Sentence


class FlagDecl(_Shape):
    """A flag of the decision, raised unless its condition is surely true."""

    id: Literal["eager", "copy_on_write"]
    unless: Expression
    over: Literal["request", "segment"]
    because: Sentence
    source: Sentence


class PoolDecl(_Shape):
    """Something of which there is so much and no more; capacity, used and reserved name run-time facts."""

    id: Name
    capacity: str
    used: str
    reserved: str
    demand: Expression
    because: Sentence
    source: Sentence


class AdmissionDecl(_Shape):
    """What a plan must keep to be admitted, and what happens where it does not."""

    id: Name
    require: Expression
    otherwise: Literal["clamp", "defer", "refuse"]
    because: Sentence
    source: Sentence


class ExecutionDecl(_Shape):
    """Whether a plan's repairs run on the request's hot path or beside other work."""

    id: Name
    when: Expression
    then: Literal["synchronous", "asynchronous"]
    because: Sentence
    source: Sentence


class WaitingDecl(_Shape):
    """The order of waiting requests."""

    rank: Expression
    aged: Expression
    because: Sentence
    source: Sentence


class DemotionDecl(_Shape):
    """Which segments leave the device before they must, and which of them first."""

    id: Name
    objects: list[Name] | None = None
    when: Expression
    rank: Expression
    to: Literal["host", "disk"]
    because: Sentence
    source: Sentence


class RetentionDecl(_Shape):
    """Which boundaries keep the state that belongs to one length."""

    id: Name
    keep: Expression
    follows: Literal["block", "device"] = "block"
    because: Sentence
    source: Sentence


class PolicyDecl(_Shape):
    """A named selection of the rules about the system's load."""

    id: Name
    minimise: Expression | None = None
    repairs: list[Name] | Literal["all"] = "all"
    admission: list[Name] = []
    execution: list[Name] = []
    waiting: Literal["arrival", "ranked"] = "arrival"
    demotion: list[Name] = []
    retention: Name
    because: Sentence
    source: Sentence


class CounterDecl(_Shape):
    """A count that weighs in the measure of a recovery; one that starts from `event.` repeats what is measured."""

    id: Name
    domain: tuple[int, int] | None = None
    start: Expression
    because: Sentence


class ProcessStepDecl(_Shape):
    """A step of a recovery: the reports that it answers, its guard, what it changes, and what follows."""

    id: Name
    on: Annotated[list[Report], Field(min_length=1)]
    when: Expression | None = None
    takes: list[Name] = []
    sets: dict[Name, Expression] = {}
    bars: bool = False
    quarantines: bool = False
    then: Onward
    because: Sentence
    source: Sentence


class RecoveringDecl(_Shape):
    """The life of one hit after its decision; counters stand in the order in which they weigh."""

    counters: Annotated[list[CounterDecl], Field(min_length=1)]
    steps: Annotated[list[ProcessStepDecl], Field(min_length=1)]


class LeaseStepDecl(_Shape):
    """A step in the life of a lease, and what it does."""

    id: Name
    does: LeaseAction
    because: Sentence
    source: Sentence


class LeasingDecl(_Shape):
    """The steps by which what a decision rests on is taken, confirmed and released."""

    take: list[LeaseStepDecl]
    confirm: list[LeaseStepDecl]
    release: list[LeaseStepDecl]


class SeriesDecl(_Shape):
    """Some of the counts of one metric; a label that `where` does not name counts with all its values."""

    metric: Name
    where: dict[Name, Label | Annotated[list[Label], Field(min_length=1, max_length=100)]] = {}


class SpanDecl(_Shape):
    """How far back a rate looks: a number of decisions, or of seconds."""

    decisions: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    seconds: Annotated[int, Field(ge=1, le=604_800)] | None = None


class ThresholdDecl(_Shape):
    """A rate that must not be exceeded; there is no rate where less than `at_least` was counted of `over`."""

    id: Name
    of: SeriesDecl
    over: SeriesDecl
    above: Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
    for_: SpanDecl = Field(alias="for")
    at_least: Annotated[int, Field(ge=1, le=1_000_000_000)] = 1
    severity: Literal["info", "warning", "critical"]
    because: Sentence
    source: Sentence


class RuleFile(_Shape):
    """One included file: any of the sections of a rulebook."""

    enums: dict[Name, list[Name]] = {}
    segment: dict[Name, FactDecl | str] = {}
    request: dict[Name, FactDecl | str] = {}
    runtime: dict[Name, FactDecl | str] = {}
    kernel: dict[Name, FactDecl | str] = {}
    group: dict[Name, FactDecl | str] = {}
    fact_sets: dict[Name, list[Name]] = {}
    door: list[Name] = []
    engine_owned: list[Name] = []
    every_object: EveryObjectDecl | None = None
    objects: dict[Name, ObjectDecl] = {}
    transitions: list[TransitionDecl] = []
    keys: dict[Name, KeyDecl] = {}
    invariants: list[InvariantDecl] = []
    assume: list[AssumptionDecl] = []
    prefill: PrefillDecl | None = None
    choosing: ChoosingDecl | None = None
    joint: list[JointDecl] = []
    flags: list[FlagDecl] = []
    pools: list[PoolDecl] = []
    admission: list[AdmissionDecl] = []
    execution: list[ExecutionDecl] = []
    waiting: WaitingDecl | None = None
    demotion: list[DemotionDecl] = []
    retention: list[RetentionDecl] = []
    policies: list[PolicyDecl] = []
    recovering: RecoveringDecl | None = None
    leasing: LeasingDecl | None = None
    thresholds: list[ThresholdDecl] = []


class RulebookFile(RuleFile):
    """The root file `rulebook.yaml`: a name, the language version, and what it includes."""

    rulebook: Name
    language: Literal[1]
    title: Sentence
    include: list[str] = []


class RepairFile(_Shape):
    """Declaration of one repair, bound to its implementation by name.

    `alignment` is that of every row that it writes, in bytes; `reads_at` that of the rows that it reads, the same
    where it is left out.
    """

    repair: Name
    runs: Literal["kernel", "model", "record"]
    summary: Sentence
    consumes: list[list[Name]]
    produces: list[Name]
    keeps: list[Name] = []
    clobbers: list[Name] = []
    establishes: dict[Name, Literal["measured", "assigned"]]
    writes: Literal["nothing", "own_block", "new_block"]
    dtypes: list[Name]
    layouts: list[Name]
    alignment: Annotated[int, Field(ge=1)]
    reads_at: Annotated[int, Field(ge=1)] | None = None
    source: Sentence
