"""Gates a toy server's prefix cache: one dictionary from hashes to blocks, two groups of layers, three faults."""

from hitproof.integrations.gate import BlockGate, GroupBlocks
from hitproof.rules.profiles import load_profile

model = load_profile("gemma-3-27b")
layers = {name: model.group(name).layers for name in ("full", "window")}
gate = BlockGate(
    model,
    {name: GroupBlocks(numbers, tokens=16, stride=131072) for name, numbers in layers.items()},
    identity={"weights": "w1", "attention_config": "a1", "adapter": "none", "media": "none", "salt": "none"},
    contract={"layout": "NHD", "version": "1", "encoding": "bfloat16", "v_layout": "rows", "shard": "0/1"},
)
hashes = [hash(("prompt", end)) for end in range(16, 2064, 16)]
index = {(name, digest): block for name in layers for block, digest in enumerate(hashes)}
for name in layers:
    gate.written(name, range(len(hashes)), first=0, digests=hashes)


def look_up(title: str, **identity: str) -> None:
    """What the server's own index claims for a prompt of 2,100 tokens, and what the gate says of it."""
    found = {name: [index[name, digest] for digest in hashes] for name in layers}
    asked = dict.fromkeys(layers, hashes)
    gated = gate.judge(length=2100, matched=2048, blocks=found, digests=asked, identity=identity)
    gate.count(gated, gated.usable, 2100)
    print(f"{title}: {gated.usable} of {gated.logical} tokens, {', '.join(gated.failed) or 'nothing failed'}")


look_up("as written")
look_up("another adapter asks", adapter="digest of its weights")
gate.freed("full", [100])
look_up("block 100 was given away")
gate.written("window", [99], first=1584, digests=[hash("another prompt")])
look_up("and block 99 of the windows holds another prompt")
print(gate.counters.rates())
