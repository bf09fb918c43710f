"""Every item of the course is proved in a cell, every listed error taught in one, and docs/coverage.md says where."""

from autograder import project
from autograder.authoring import coverage
from autograder.grading import source

LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
ITEMS = coverage.wanted(project.ITEMS)


def test_every_item_and_every_listed_error_has_a_cell_that_shows_it() -> None:
    assert list(ITEMS["item"]) == list(range(1, 105)) and list(ITEMS["error"]) == list(range(1, 38))
    found = coverage.problems(ITEMS, LECTURES)
    assert not found, "\n".join(found)


def test_every_row_says_which_editions_of_the_lecture_have_it() -> None:
    claims = [claim for claims in ITEMS.values() for claim in claims.values()]
    assert all(set(claim.editions) <= set(coverage.EDITIONS) for claim in claims)
    assert {claim.editions for claim in claims} == {(2025, 2026), (2025,), (2026,), ()}
    page = coverage.page(ITEMS, LECTURES)
    assert "| item | what | 2025 | 2026 | where" in page and "| error | what | 2025 | 2026 | where" in page
    assert "| 19 | a tensor is a storage and metadata | ✓ |  | [" in page  # only the lecture of 2025 has it
    assert "| 97 | the roofline |  | ✓ | [" in page
    assert "| 45 | the training of GPT-3 in FLOPs | ✓ | ✓ | [" in page


def test_the_committed_page_is_what_the_tags_give() -> None:
    assert project.COVERAGE.read_text(encoding="utf-8") == coverage.page(ITEMS, LECTURES), (
        "docs/coverage.md is stale: run `course coverage` and commit the result"
    )


def test_what_is_missing_or_unknown_is_named() -> None:
    lecture = next(lecture for lecture in LECTURES if lecture.name == "01_tensors")
    items = {"item": {5: coverage.Claim("tensors", (2025,)), 99: coverage.Claim("the moon")}, "error": {}}
    found = coverage.problems(items, [lecture])
    assert "no cell proves item 99 (the moon): tag the one that does with item-99" in found
    assert any("there is no item 6 in items.toml" in problem for problem in found)
    page = coverage.page(items, [lecture])
    assert "| 99 | the moon |  |  | **nowhere** |" in page and "| 5 | tensors | ✓ |  | [01_tensors](" in page
