"""A hand-made corpus of 300 pages in English and Chinese with 12 planted chains, three of which have two answers.

A chain is a person who founded a club in a year, was born in a town, wrote a book and won a prize; each of the four has
a page of its own. Only the four facts together single the person out; in an ambiguous chain a second person shares all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from explorers.corpora.pages import Page

N_PAGES = 300
N_CHAINS = 12
AMBIGUOUS = (3, 7, 11)
"""Chains with a second answer."""
CHINESE = (2, 5, 8, 11)
"""Chains in Chinese, half of whose pages have traditional characters."""
FIRST = ("Ada", "Bela", "Carl", "Dora", "Emil", "Frida", "Georg", "Hanna", "Ivo", "Jana", "Karel", "Lena")
LAST = (
    "Moravec",
    "Nadasdy",
    "Oresund",
    "Pelikan",
    "Quast",
    "Rezek",
    "Sobota",
    "Tichy",
    "Urban",
    "Vesely",
    "Wolny",
    "Zeman",
)
TOWNS = (
    "Alder",
    "Birchton",
    "Cedarby",
    "Dunmore",
    "Elmford",
    "Fernley",
    "Goswick",
    "Harlow",
    "Ivybridge",
    "Jarrow",
    "Kelso",
    "Lowick",
)
SUBJECTS = (
    "glass",
    "tides",
    "moths",
    "bridges",
    "clocks",
    "violins",
    "lichens",
    "comets",
    "weaving",
    "salt",
    "maps",
    "ferries",
)
PRIZES = (
    "Heron",
    "Kestrel",
    "Plover",
    "Curlew",
    "Dunlin",
    "Avocet",
    "Merlin",
    "Osprey",
    "Redshank",
    "Siskin",
    "Turnstone",
    "Wheatear",
)
CLUBS = (
    "Rowing",
    "Chess",
    "Fencing",
    "Cycling",
    "Archery",
    "Skating",
    "Sailing",
    "Climbing",
    "Bowling",
    "Hockey",
    "Judo",
    "Curling",
)
ZH_PERSON = {2: "林清远", 5: "趙國華", 8: "陈立民", 11: "孫雲龍"}
ZH_SECOND = {11: "馬文濤"}
ZH_TOWN = {2: "安溪镇", 5: "龍門鎮", 8: "白沙镇", 11: "鳳鳴鎮"}
ZH_CLUB = {2: "划船俱乐部", 5: "圍棋俱樂部", 8: "击剑俱乐部", 11: "射箭俱樂部"}
ZH_BOOK = {2: "《玻璃的历史》", 5: "《潮汐之書》", 8: "《桥梁笔记》", 11: "《鐘錶的故事》"}
ZH_PRIZE = {2: "白鹭奖", 5: "鳳凰獎", 8: "海鸥奖", 11: "雲雀獎"}
PADDING = "Meetings happen every second week, minutes go to an archive."
ZH_PADDING = "每两周举行一次会议，记录保存在县档案馆。"


@dataclass(frozen=True, kw_only=True)
class PlantedFact:
    """A fact with the page that states it. `hidden`: the entity that later rounds hide; `blurred`: its blur."""

    subject: str
    relation: str
    object: str
    page: str
    quote: str
    clue: str
    hidden: str
    blurred_clue: str
    blurred: str


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A planted chain. `second` is the second answer; empty for none."""

    number: int
    answer: str
    answer_page: str
    second: str
    second_page: str
    facts: tuple[PlantedFact, ...]
    is_chinese: bool

    @property
    def seed(self) -> str:
        """Title of the page of the club."""
        return self.facts[0].object


def make_chain(number: int) -> Chain:
    """Return a chain of the corpus."""
    return _make_chinese(number) if number in CHINESE else _make_english(number)


def _make_english(number: int) -> Chain:
    answer = f"{FIRST[number]} {LAST[number]}"
    second = f"{FIRST[-number - 1]} {LAST[(number + 5) % 12]}son" if number in AMBIGUOUS else ""
    club, town = f"{TOWNS[number]} {CLUBS[number]} Club", TOWNS[number]
    book, prize, year = f"A Book of {SUBJECTS[number].title()}", f"{PRIZES[number]} Prize", 1950 + 4 * number
    both = f"{answer} and {second}" if second else answer
    facts = (
        _fact(
            answer,
            "founded",
            club,
            f"club-{number}",
            f"The club was founded in {year} by {both}.",
            f"the person founded the {club} in {year}",
            str(year),
            "the person founded a sports club in the {}",
            f"{year // 10 * 10}s",
        ),
        _fact(
            answer,
            "born in",
            town,
            f"town-{number}",
            f"Among those born in {town} is the founder {both}.",
            f"the person was born in {town}",
            town,
            "the person was born in {}",
            f"a place with {number + 3} wells",
        ),
        _fact(
            answer,
            "wrote",
            book,
            f"book-{number}",
            f"{book} was written by {both}.",
            f"the person wrote {book}",
            book,
            "the person wrote {}",
            f"a work about {SUBJECTS[number]}",
        ),
        _fact(
            answer,
            "won",
            prize,
            f"prize-{number}",
            f"The {prize} went to {both} in {year + 20}.",
            f"the person won the {prize} in {year + 20}",
            prize,
            "the person won {}",
            f"an award of {100 * number + 50} crowns",
        ),
    )
    return Chain(
        number=number,
        answer=answer,
        answer_page=f"person-{number}",
        second=second,
        second_page=f"second-{number}" if second else "",
        facts=facts,
        is_chinese=False,
    )


def _make_chinese(number: int) -> Chain:
    answer, second, year = ZH_PERSON[number], ZH_SECOND.get(number, ""), 1950 + 4 * number
    club, town, book, prize = (names[number] for names in (ZH_CLUB, ZH_TOWN, ZH_BOOK, ZH_PRIZE))
    both = f"{answer}和{second}" if second else answer
    facts = (
        _fact(
            answer,
            "创立",
            f"{town}{club}",
            f"club-{number}",
            f"{town}{club}由{both}于{year}年创立。",
            f"此人于{year}年创立了{town}{club}",
            str(year),
            "此人在{}创立了一个体育俱乐部",
            f"20世纪{year % 100 // 10 * 10}年代",
        ),
        _fact(
            answer,
            "出生于",
            town,
            f"town-{number}",
            f"{town}的名人有{both}。",
            f"此人出生于{town}",
            town,
            "此人出生于{}",
            f"一个有{number + 3}口井的小镇",
        ),
        _fact(
            answer,
            "著有",
            book,
            f"book-{number}",
            f"{book}的作者是{both}。",
            f"此人著有{book}",
            book,
            "此人著有{}",
            f"一部{number + 20}章的作品",
        ),
        _fact(
            answer,
            "获得",
            prize,
            f"prize-{number}",
            f"{prize}于{year + 20}年授予{both}。",
            f"此人于{year + 20}年获得{prize}",
            prize,
            "此人获得过{}",
            f"奖金为{100 * number + 50}元的奖项",
        ),
    )
    return Chain(
        number=number,
        answer=answer,
        answer_page=f"person-{number}",
        second=second,
        second_page=f"second-{number}" if second else "",
        facts=facts,
        is_chinese=True,
    )


def _fact(
    subject: str, relation: str, thing: str, page: str, quote: str, clue: str, hidden: str, form: str, blurred: str
) -> PlantedFact:
    value = f"the {blurred}" if form.startswith("the person founded") else blurred
    text = form.format(blurred)
    return PlantedFact(
        subject=subject,
        relation=relation,
        object=thing,
        page=page,
        quote=quote,
        clue=clue,
        hidden=hidden,
        blurred_clue=text,
        blurred=value,
    )


CHAINS = tuple(make_chain(number) for number in range(N_CHAINS))


def make_pages() -> list[Page]:
    """Return the 300 pages."""
    pages = [page for chain in CHAINS for page in _make_chain_pages(chain)]
    draw = random.Random(7)
    pages += [_make_filler(number, draw) for number in range(N_PAGES - len(pages))]
    return pages


def _make_chain_pages(chain: Chain) -> list[Page]:
    padding = ZH_PADDING if chain.is_chinese else PADDING
    pages = []
    for fact in chain.facts:
        text = f"{fact.object}\n\n{padding}\n\n{fact.quote}\n\n{padding}"
        pages.append(_page(fact.page, fact.object, text, chain.answer_page))
    for name, key in ((chain.answer, chain.answer_page), (chain.second, chain.second_page)):
        if name:
            text = f"{name}的生平。\n\n{padding}" if chain.is_chinese else f"{name} lived a quiet life.\n\n{padding}"
            pages.append(_page(key, name, text, chain.facts[0].page))
    return pages


def _make_filler(number: int, draw: random.Random) -> Page:
    if number % 3 == 0:
        crop = draw.choice(("水稻", "小麦", "玉米"))
        text = f"第{number}号村庄。{ZH_PADDING}这里有{draw.randrange(2, 90)}户人家，种植{crop}。"
        return _page(f"filler-{number}", f"第{number}号村庄", text)
    words = [
        draw.choice((*SUBJECTS, *CLUBS, *PRIZES, "river", "school", "annual", "garden", "tower", "minutes"))
        for _ in range(40)
    ]
    text = f"Parish {number} has {draw.randrange(200, 900)} people. " + " ".join(words) + ". " + PADDING
    return _page(f"filler-{number}", f"Parish {number}", text)


def _page(key: str, title: str, text: str, *links: str) -> Page:
    return Page(id=key, url=f"https://planted.example/{key}", title=title, text=text, links=links, license="CC0-1.0")
