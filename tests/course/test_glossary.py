"""The glossary: what counts as a definition, that each term has one, and that the field's terms are there."""

from __future__ import annotations

import pytest

from autograder import project
from autograder.authoring import glossary
from autograder.grading import source

LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
TERMS = {glossary.key(definition.term) for lecture in LECTURES for definition in glossary.definitions(lecture)}
FIELD = """
FLOP, MFU, parameter, token, gradient, optimizer state, activation, scaling law, tensor, dtype,
bandwidth, kernel, overflow, underflow, stride, view, softmax, logit, causal mask, arithmetic
intensity, roofline, chain rule, initialization, dropout, GELU, positional embedding, probability,
learning rate, momentum, first moment, second moment, weight decay, validation loss, validation set,
overfitting, perplexity, bits per byte, checkpoint, mixed precision, loss scaling, stochastic
rounding, gradient accumulation, LoRA, all-reduce, NVLink, InfiniBand
"""
TEXT = """\
# %% [markdown]
r'''
# 11 · Demo

> **How many bytes?**

## 1 · Where numbers `lie`

### Exercise 11.1 · Not a section &nbsp; ★☆☆ &nbsp; 5 minutes

**Predict.** Guess. A **stride** is how far the next element is, e.g. 4. It isn't a **view**:

- **FLOPs**: a count, and
  not a rate.

> **Trap: two words.** An **ulp** is a gap.

| **no** | table |

```python
"**no** code"
```
'''

# %%
import torch
"""


def found(text: str) -> list[tuple[str, str, str]]:
    lecture = source.parse(project.SOLUTIONS / "11_demo.py", text, built=False)
    return [(d.term, d.sentence, d.section) for d in glossary.definitions(lecture)]


def test_a_definition_is_a_bold_term_with_its_sentence_and_its_section() -> None:
    section = "1 · Where numbers `lie`"
    assert found(TEXT) == [
        ("stride", "A **stride** is how far the next element is, e.g. 4.", section),
        ("view", "It isn't a **view**:", section),
        ("FLOPs", "**FLOPs**: a count, and not a rate.", section),
        ("ulp", "An **ulp** is a gap.", section),
    ]


def test_the_page_is_sorted_and_links_to_the_section() -> None:
    page = glossary.page([source.parse(project.SOLUTIONS / "11_demo.py", TEXT, built=False)])
    heads = [line for line in page.splitlines() if line.startswith("## ")]
    assert heads == ["## F", "## S", "## U", "## V"]
    assert "**ulp** ([11](11_demo/11_demo.ipynb#1--where-numbers-lie)): An ulp is a gap." in page


def test_a_term_that_is_defined_twice_is_named() -> None:
    lecture = source.parse(project.SOLUTIONS / "11_demo.py", TEXT.replace("ulp", "Strides"), built=False)
    assert glossary.problems([lecture]) == ["11_demo.py defines Strides (in bold), but 11_demo.py already does"]


def test_every_term_is_defined_once() -> None:
    assert not (problems := glossary.problems(LECTURES)), "\n".join(problems)


@pytest.mark.parametrize(
    "term",
    [" ".join(term.split()) for term in FIELD.split(",")],
)
def test_the_fields_terms_are_defined(term: str) -> None:
    assert glossary.key(term) in TERMS
