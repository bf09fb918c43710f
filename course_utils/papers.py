"""Papers that the table of facts and the planner both cite; `Source.at` points to a place in one."""

from __future__ import annotations

from course_utils.sources import Source, arxiv

CHINCHILLA = arxiv("Hoffmann et al., Training Compute-Optimal Large Language Models", "2203.15556", "2022-03")
KORTHIKANTI = arxiv("Korthikanti et al., Reducing Activation Recomputation", "2205.05198", "2022-05")
LORA = arxiv("Hu et al., LoRA", "2106.09685", "2021-06")
MEGATRON = arxiv("Narayanan et al., Megatron-LM", "2104.04473", "2021-04")
MUON = Source("Jordan et al., Muon", "https://kellerjordan.github.io/posts/muon/", "paper", "2024-12", "2026-11")
PALM = arxiv("Chowdhery et al., PaLM", "2204.02311", "2022-04", verified="2026-11")
POPE = arxiv("Pope et al., Efficiently Scaling Transformer Inference", "2211.05102", "2022-11")
ZERO = arxiv("Rajbhandari et al., ZeRO", "1910.02054", "2019-10")
