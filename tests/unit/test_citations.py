"""Citations of docs/spec/ in docstrings, comments and pages lead to sections that exist, and have one form."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "docs" / "spec"

PAGE = "(?:decision|controller|api|quantity|scenarios)"
SECTION = r"[1-9]\d?(?:\.[1-9]\d?)?(?!\d)"
REMARK = r"\((?P<{}>(?:[^()]|\([^()]*\))*)\)"
ITEM = re.compile(rf"(?P<section>{SECTION})(?: {REMARK.format('remark')})?")
ITEMS = rf"{SECTION}(?: {REMARK.format('_1')})?(?:(?:, and|,| and| to) {SECTION}(?: {REMARK.format('_2')})?)*"
CITATION = re.compile(rf"docs/spec/(?P<page>[\w-]+)\.md(?:(?P<items> {ITEMS})| {REMARK.format('title')})?")
OTHER_PATH = re.compile(rf'(?<![\w/."-])(?:\.\./)*(?:shared/)?(?:spec/)?{PAGE}\.md')
NUMBER_ALONE = re.compile(
    rf"(?<![\w.])\((?=[^()]*(?:\d\.\d|step|point)){SECTION}(?:(?:,| and| to) {SECTION})*"
    r"(?:,? (?:steps?|points?|rules?) [^()]*)?\)"
)
STEPS = re.compile(r"(?:^|, )(?:steps?|points?|rules?) (?P<numbers>\d[\d., andto]*)$")
HEADING = re.compile(r"^##+ (?:(?P<number>\d+(?:\.\d+)?)\.? )?(?P<title>.*)$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\([^)]*\)")


class Section(NamedTuple):
    """A section of a page: its title, and its text as far as the next heading."""

    title: str
    text: str


@cache
def sections(page: str) -> dict[str, Section]:
    """The sections of a page by number, by title where they have none; empty where there is no such page."""
    path = SPEC / f"{page}.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = list(HEADING.finditer(text))
    ends = [*(each.start() for each in found), len(text)][1:]
    return {
        each["number"] or each["title"]: Section(each["title"], text[each.end() : end])
        for each, end in zip(found, ends, strict=True)
    }


def words(text: str) -> list[str]:
    """The words of a title, in lower case."""
    return re.findall(r"[\w']+", text.lower())


def is_shortened(title: str, heading: str) -> bool:
    """Whether the words of `title`, one at least, stand in the heading in that order."""
    rest = iter(words(heading))
    return bool(words(title)) and all(word in rest for word in words(title))


def faults_of_remark(section: Section, remark: str) -> Iterator[str]:
    """What is wrong with the words in parentheses behind a section's number: a title, steps, or both."""
    steps = STEPS.search(remark)
    title = remark[: steps.start()] if steps else remark
    if title and not is_shortened(title, section.title):
        yield f"({title}) is not the title {section.title}"
    for number in re.findall(r"\d+(?:\.\d+)?", steps["numbers"]) if steps else []:
        top = number.partition(".")[0]
        if not re.search(rf"^(?:\*\*Step {top}\*\*|{top}\. )", section.text, re.MULTILINE):
            yield f"no step {number}"


def faults_of_citation(citation: re.Match[str]) -> Iterator[str]:
    """What is wrong with one citation."""
    known = sections(citation["page"])
    if not known and citation["page"] != "README":
        yield f"{citation[0]}: no such page"
    if citation["title"] and not any(is_shortened(citation["title"], each.title) for each in known.values()):
        yield f"{citation[0]}: no such title"
    for item in ITEM.finditer(citation["items"] or ""):
        if item["section"] not in known:
            yield f"{citation[0]}: no section {item['section']}"
        elif item["remark"]:
            for fault in faults_of_remark(known[item["section"]], item["remark"]):
                yield f"{citation[0]}: {fault}"


def without_titles(text: str) -> Iterator[str]:
    """The sections that a text cites for the first time without their titles."""
    seen = set()
    for citation in CITATION.finditer(text):
        for item in ITEM.finditer(citation["items"] or ""):
            cited = (citation["page"], item["section"])
            if cited not in seen and not STEPS.sub("", item["remark"] or ""):
                yield f"{citation[0]}: {item['section']} without its title"
            seen.add(cited)


def on_one_line(text: str) -> str:
    """A text with its lines joined, those of comments too: citations may continue on the next line."""
    return re.sub(r"\s*\n\s*(?:# )?", " ", text)


def docstrings(source: str) -> Iterator[str]:
    """All texts that stand as statements, and all lines that are comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    yield from re.findall(r"^\s*#.*", source, re.MULTILINE)


def other_forms(text: str, *, is_code: bool) -> list[str]:
    """Citations that do not begin with `docs/spec/`."""
    found = [each[0] for each in OTHER_PATH.finditer(LINK.sub("", text))]
    if is_code and NUMBER_ALONE.search(text):
        found += [each[0] for part in docstrings(text) for each in NUMBER_ALONE.finditer(part)]
    return found


@cache
def texts() -> dict[str, str]:
    """Every file that may cite, by its path in the repository, but for this one, which has examples of faults."""
    paths = [path for folder in ("src", "tests", "docs") for path in (ROOT / folder).rglob("*.*")]
    wanted = [path for path in [*paths, *ROOT.glob("*.md")] if path.suffix in (".py", ".md")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in wanted if path != Path(__file__)}


def test_every_citation_exists() -> None:
    """File, section, title and steps of each citation in src, tests and docs are those of docs/spec/."""
    citations = [(name, each) for name, text in texts().items() for each in CITATION.finditer(on_one_line(text))]
    faults = [f"{name}: {fault}" for name, each in citations for fault in faults_of_citation(each)]
    assert (len(citations) > 150, faults) == (True, [])


def test_the_first_citation_of_a_section_has_its_title() -> None:
    """A reader of a module need not look up what a number stands for."""
    code = {name: text for name, text in texts().items() if name.endswith(".py")}
    assert [f"{name}: {fault}" for name, text in code.items() for fault in without_titles(on_one_line(text))] == []


def test_there_is_one_form_of_citation() -> None:
    """Neither a page without its folder nor a section's number alone stands anywhere."""
    found = {name: other_forms(text, is_code=name.endswith(".py")) for name, text in texts().items()}
    assert {name: forms for name, forms in found.items() if forms} == {}


def test_pages_of_the_specification_refer_to_their_own_sections() -> None:
    """`section 7.6` in a page of docs/spec/ is a section of that page."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in SPEC.glob("*.md") if path.stem != "README"}
    lost = [
        (page, number)
        for page, text in pages.items()
        for number in re.findall(r"\b[Ss]ections? (\d+(?:\.\d+)?)", text)
        if number not in sections(page)
    ]
    assert (len(pages), lost) == (5, [])


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("docs/spec/decision.md 6.3 (Utilisation target) and 9.3", []),
        ("docs/spec/decision.md 2 (Reconcile in order, steps 1 to 9), 7.6 (rule 3)", []),
        ("docs/spec/scenarios.md (The documentation's numbers)", []),
        ("docs/spec/api.md 77", ["docs/spec/api.md 77: no section 77"]),
        ("docs/spec/api.md 1 (Types) to 12", ["docs/spec/api.md 1 (Types) to 12: no section 12"]),
        ("docs/spec/nothing.md", ["docs/spec/nothing.md: no such page"]),
        (
            "docs/spec/api.md 5 (Scaling)",
            ["docs/spec/api.md 5 (Scaling): (Scaling) is not the title Scale subresource"],
        ),
        ("docs/spec/decision.md 2 (step 14)", ["docs/spec/decision.md 2 (step 14): no step 14"]),
        ("docs/spec/scenarios.md (Nothing)", ["docs/spec/scenarios.md (Nothing): no such title"]),
    ],
)
def test_faults_of_citations(text: str, faults: list[str]) -> None:
    """The check sees a page, a section, a title and a step that do not exist."""
    assert [fault for each in CITATION.finditer(text) for fault in faults_of_citation(each)] == faults


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Source: controller.md 5.", ["controller.md"]),
        ("Source: spec/decision.md 6.3.", ["spec/decision.md"]),
        ("Source: ../shared/spec/api.md 2.", ["../shared/spec/api.md"]),
        ('"""The pods (3.1)."""', ["(3.1)"]),
        ('"""Zero (2, step 7)."""', ["(2, step 7)"]),
        ('"""Both (8, 9.2)."""', ["(8, 9.2)"]),
        ("# (6.5 to 6.8)", ["(6.5 to 6.8)"]),
        ("Source: docs/spec/api.md 2 (Validation); docs/controller.md.", []),
        ("[controller.md](controller.md)", []),
        ('"""ceil(9.33) is 10, in four (18) cases."""', []),
        ("between(3.1, 4)", []),
    ],
)
def test_other_forms(text: str, forms: list[str]) -> None:
    """The check sees citations without their folder or without their page."""
    is_code = text.startswith(('"', "#", "between"))
    assert other_forms(text, is_code=is_code) == forms
