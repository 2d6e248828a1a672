"""What a manager tells: a real Prometheus client scrapes it, and its rates are those of a plain model."""

from __future__ import annotations

import random
from urllib.request import urlopen

import pytest

from hitproof.engine.cache.gauges import ManagerCollector
from hitproof.engine.observe import PrometheusCollector, observe
from tests.engine.cache.cases import Machine, engine, prompt_tokens

prometheus = pytest.importorskip("prometheus_client")
parser = pytest.importorskip("prometheus_client.parser")

UNIT = 32


class PlainModel:
    """What a prefix cache of whole prompts would claim: the longest common run of whole units with any of them."""

    def __init__(self) -> None:
        self.stored: list[tuple[list[int], bool]] = []
        self.parts = {"touched": 0, "logical": 0, "effective": 0, "recovered": 0, "recomputed": 0}

    def ask(self, tokens: list[int]) -> None:
        """Count one request; prefixes that lie in slower storage are recovered and lie on the device afterwards."""
        best, place = 0, -1
        for number, (other, _) in enumerate(self.stored):
            same = next((i for i, (a, b) in enumerate(zip(tokens, other, strict=False)) if a != b), None)
            same = min(len(tokens), len(other)) if same is None else same
            ends = [same - same % UNIT, *([len(other)] if same == len(other) else [])]
            length = max(end if end < len(tokens) else (len(tokens) - 1) // UNIT * UNIT for end in ends)
            if length > best:
                best, place = length, number
        self.parts["touched"] += len(tokens)
        self.parts["logical"] += best
        if best:
            other, below = self.stored[place]
            self.parts["recovered" if below else "effective"] += best
            self.stored[place] = (other, False)


def scraped(port: int) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample that a client reads over HTTP."""
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_scrape_tells_the_rates_of_the_plain_model() -> None:
    """Prompts that share prefixes of any length, some demoted meanwhile: touched, logical, effective and recovered."""
    observation = observe(engine("gemma-3-27b").bound)
    machine = Machine("gemma-3-27b", blocks=256, unit=UNIT, observer=observation.observer)
    registry = prometheus.CollectorRegistry()
    registry.register(PrometheusCollector(observation.counters, observation.thresholds))
    registry.register(ManagerCollector(machine.manager))
    server, _ = prometheus.start_http_server(0, registry=registry)
    model, draw = PlainModel(), random.Random(5)
    try:
        prompts: list[list[int]] = []
        for seed in range(4):
            tokens = prompt_tokens(200 + 37 * seed, seed=seed)
            model.ask(tokens)
            assert machine.fill(tokens) == ""
            model.stored.append((tokens, False))
            prompts.append(tokens)
        for turn in range(40):
            seed = draw.randrange(4)
            base = prompts[seed]
            if turn % 5 == 4 and machine.demote_all(base):
                model.stored[seed] = (base, True)
            asked = [*base[: draw.randrange(1, len(base) + 1)], *prompt_tokens(draw.randrange(1, 90), seed=100 + turn)]
            model.ask(asked)
            machine.ask(asked)
            machine.manager.housekeep()
        samples = scraped(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
    told = {
        part: samples["hitproof_tokens_total", (("part", part),)]
        for part in ("touched", "logical", "effective", "recovered", "recomputed")
    }
    assert told == model.parts
    assert model.parts["effective"] and model.parts["recovered"]
    for group in machine.memory.groups():
        columns = machine.manager.columns(group)
        assert samples["hitproof_blocks", (("group", group), ("part", "free"))] == columns.free
    assert samples["hitproof_transitions_total", (("result", "fired"), ("transition", "demote_end"))] > 0
    machine.check()
