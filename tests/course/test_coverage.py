"""Every item of the course is proved in a cell, every listed error taught in one, and docs/coverage.md says where."""

from autograder import project
from autograder.authoring import coverage
from autograder.grading import source

LECTURES = [source.read(path) for path in source.lectures(project.SOLUTIONS)]
ITEMS = coverage.wanted(project.ITEMS)


def test_every_item_and_every_listed_error_has_a_cell_that_shows_it() -> None:
    assert list(ITEMS["item"]) == list(range(1, 88)) and list(ITEMS["error"]) == list(range(1, 28))
    found = coverage.problems(ITEMS, LECTURES)
    assert not found, "\n".join(found)


def test_the_committed_page_is_what_the_tags_give() -> None:
    assert project.COVERAGE.read_text(encoding="utf-8") == coverage.page(ITEMS, LECTURES), (
        "docs/coverage.md is stale: run `course coverage` and commit the result"
    )


def test_what_is_missing_or_unknown_is_named() -> None:
    lecture = next(lecture for lecture in LECTURES if lecture.name == "01_tensors")
    items = {"item": {5: "tensors", 99: "the moon"}, "error": {}}
    found = coverage.problems(items, [lecture])
    assert "item 99 (the moon) is shown nowhere: tag the cell that proves it item-99" in found
    assert any("there is no item 6 in items.toml" in problem for problem in found)
    page = coverage.page(items, [lecture])
    assert "| 99 | the moon | **nowhere** |" in page and "| 5 | tensors | [01_tensors](" in page
