"""A conversation of two turns behind a prefix cache: the second turn computes its own tokens alone.

Run it with `python examples/transformers_cache.py`. The model is tiny and its weights are random; replace the two
lines that make it by `AutoModelForCausalLM.from_pretrained(...)` and its tokenizer.
"""

import torch

from hitproof.integrations.transformers import PrefixCache, tiny_model

torch.manual_seed(0)
model = tiny_model("gemma-3").model
first, question = torch.randint(3, 97, (2, 90)), torch.randint(3, 97, (2, 20))

cache = PrefixCache(model, unit=8, blocks=256, identity={"salt": "tenant-1"})

answered = cache.generate(first, max_new_tokens=10, do_sample=False)
second = torch.cat([answered, question], dim=1)
print("second turn:", cache.generate(second, max_new_tokens=10, do_sample=False)[:, second.shape[1] :].tolist())

served = cache.prefill(second[0].tolist())
print(f"third time: {served.answer.verdict}, {served.usable} of {second.shape[1]} tokens reused")

with torch.no_grad():
    cold = model(second[:1], use_cache=False).logits[0, served.usable :]
print(f"largest difference from a cold run: {float((served.logits - cold).abs().max() / cold.std()):.1e} of the spread")

cache.identity["adapter"] = "digest of another adapter"
print("with another adapter:", cache.prefill(second[0].tolist()).answer.verdict)
