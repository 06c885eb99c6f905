"""The words by which titles count, by language.

Owns the vocabulary.  Refuses to own: the rules it is read by (`numbers`).  Must never break: a word means one thing in every language that
has it.  A new language is a new block here and nothing else; words of one meaning are parted by "|", their case and accents do not matter.
"""

from __future__ import annotations

import unicodedata
from typing import Final

BEFORE: Final[dict[str, dict[str, str]]] = {
    "English": {
        "chapter": "chapter|chapters|chap|chaps|ch|chs",
        "episode": "episode|episodes|ep|eps",
        "volume": "volume|volumes|vol|vols|book",
        "season": "season|arc",
        "prologue": "prologue|prolog",
        "epilogue": "epilogue|epilog",
        "interlude": "interlude|intermission",
        "side": "side story|side stories|side chapter|side episode|sidestory|spin off|spinoff",
        "extra": "extra|extras|bonus|mini|omake",
        "special": "special",
        "oneshot": "oneshot|one shot",
        "notice": "notice|hiatus|announcement|announcements|delay|delayed|postponed|author's note|authors note",
        "final": "final|last",
        "no.": "no|nr",
    },
    "Spanish, Portuguese": {
        "chapter": "capítulo|capítulos|cap|caps",
        "episode": "episodio|episodios|episódio|episódios",
        "volume": "volumen|tomo|libro|livro",
        "season": "temporada",
        "prologue": "prólogo",
        "epilogue": "epílogo",
        "interlude": "interludio|interlúdio",
        "special": "especial",
        "side": "historia paralela|história paralela|historia secundaria",
        "notice": "aviso|anuncio|anúncio",
        "final": "último|última",
    },
    "French": {
        "chapter": "chapitre|chapitres",
        "episode": "épisode|épisodes",
        "volume": "tome|livre",
        "season": "saison",
        "prologue": "prologue",
        "epilogue": "épilogue",
        "interlude": "interlude|intermède",
        "special": "spécial|hors série",
        "notice": "annonce",
        "final": "dernier",
    },
    "German, Dutch": {
        "chapter": "kapitel|kap|hoofdstuk",
        "episode": "folge|aflevering",
        "volume": "band|buch|boek",
        "season": "staffel|seizoen",
        "prologue": "prolog|proloog",
        "epilogue": "epilog|epiloog",
        "interlude": "zwischenspiel",
        "side": "nebengeschichte",
        "extra": "bonuskapitel",
        "special": "sonderfolge",
        "notice": "ankündigung",
        "final": "letztes|letzte|laatste",
    },
    "Italian": {
        "chapter": "capitolo|capitoli",
        "episode": "puntata",
        "season": "stagione",
        "epilogue": "epilogo",
        "special": "speciale",
        "notice": "avviso|annuncio",
        "final": "ultimo|ultima",
    },
    "Polish": {"chapter": "rozdział", "episode": "odcinek", "volume": "tom", "season": "sezon", "notice": "ogłoszenie"},
    "Russian, Ukrainian": {
        "chapter": "глава|главы|гл|розділ",
        "episode": "эпизод|серия|выпуск|епізод|серія",
        "volume": "том|книга",
        "season": "сезон",
        "prologue": "пролог",
        "epilogue": "эпилог|епілог",
        "interlude": "интерлюдия|інтерлюдія",
        "side": "побочная история",
        "extra": "экстра|бонус",
        "special": "спецвыпуск",
        "oneshot": "ваншот",
        "notice": "объявление|анонс",
        "final": "последняя|финальная|финал|остання",
    },
    "Turkish": {
        "chapter": "bölüm|bölümler",
        "volume": "cilt",
        "prologue": "prolog|önsöz",
        "extra": "ekstra",
        "special": "özel",
        "notice": "duyuru",
        "final": "son",
    },
    "Vietnamese": {
        "chapter": "chương",
        "volume": "quyển",
        "season": "tập|phần",
        "side": "ngoại truyện|phiên ngoại",
        "notice": "thông báo",
    },
    "Indonesian": {
        "chapter": "bab",
        "volume": "jilid",
        "season": "musim",
        "special": "spesial",
        "notice": "pengumuman",
    },
    "Thai": {
        "chapter": "บทที่",
        "episode": "ตอนที่|ตอน",
        "volume": "เล่มที่|เล่ม",
        "season": "ซีซั่น|ซีซัน|ภาค",
        "prologue": "บทนำ",
        "epilogue": "บทส่งท้าย",
        "special": "ตอนพิเศษ",
        "notice": "ประกาศ",
        "final": "จบ",
    },
    "Arabic, Hebrew": {
        "chapter": "الفصل|فصل|פרק",
        "episode": "الحلقة|حلقة",
        "volume": "المجلد",
        "season": "الموسم",
    },
    "Japanese": {
        "chapter": "チャプター",
        "episode": "エピソード",
        "season": "シーズン",
        "prologue": "プロローグ|序章",
        "epilogue": "エピローグ|終章",
        "interlude": "幕間|間章|閑話",
        "side": "番外編|番外篇|番外|外伝",
        "extra": "おまけ",
        "special": "特別編|特別篇|特別話",
        "oneshot": "読み切り|読切",
        "notice": "お知らせ|休載",
        "final": "最終",
    },
    "Chinese": {
        "volume": "卷",
        "prologue": "楔子|序幕|引子|序章",
        "epilogue": "尾声|尾聲|终章|終章",
        "side": "番外编|番外篇|番外|外传|外傳",
        "special": "特别篇|特別篇",
        "notice": "公告|通知|请假条|請假條",
        "final": "最终|最終|最后一|最後一",
    },
    "Korean": {
        "episode": "에피소드",
        "season": "시즌",
        "prologue": "프롤로그",
        "epilogue": "에필로그",
        "interlude": "막간",
        "side": "외전|번외",
        "extra": "보너스",
        "special": "특별편",
        "notice": "공지|휴재",
        "final": "최종|마지막",
        "finale": "최종화|마지막화",
    },
}
"""Words with their number, if any, after them.  The keys are labels of SITES 14, and: season counts around chapters and is nothing alone;
final makes the word beside it a Chapter without a number; finale is one; no. is a hash when a full stop and a number follow."""

AFTER: Final[dict[str, dict[str, str]]] = {
    "Japanese, Chinese": {"chapter": "章", "episode": "話|话|回|集", "volume": "巻|卷", "season": "期|季"},
    "Korean": {"chapter": "장", "episode": "화|회", "volume": "권", "season": "시즌"},
    "Russian, Ukrainian": {
        "chapter": "глава|розділ",
        "episode": "серия|эпизод|серія",
        "volume": "том",
        "season": "сезон",
    },
    "Turkish": {"chapter": ".bölüm", "volume": ".cilt", "season": ".sezon"},
    "German": {"chapter": ".kapitel", "episode": ".folge", "volume": ".band|.buch", "season": ".staffel"},
}
"""Words with their number before them: "12話", "5 глава"; with a full stop between where the table has one: "61. Bölüm", since "61 bölüm"
counts things, as "12 chapters" does in English."""

LETTERS: Final = {"v": "volume", "b": "volume", "t": "volume", "s": "season", "c": "chapter", "e": "episode"}
"""Letters that count only side by side and with a number touching each: "S2 E10", "v3c21.5"."""

NTH: Final = "第제"
"""What makes the number after it a place in a row."""

ONES: Final = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
TEENS: Final = {
    "zero": 0, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
TENS: Final = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
"""English only: in other languages they are words of ours (Spanish "once", German "elf")."""

HAN_DIGITS: Final = {"\u3007": 0, **dict(zip("零一二三四五六七八九", range(10), strict=True)), "两": 2, "兩": 2}
HAN_PLACES: Final = {"十": 10, "百": 100, "千": 1000}


def _plain(word: str) -> str:
    bare = "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
    return bare if bare.isascii() else word


def _by_word(table: dict[str, dict[str, str]]) -> dict[str, str]:
    return {
        form: meaning
        for words in table.values()
        for meaning, forms in words.items()
        for word in forms.split("|")
        for form in (word, _plain(word))
    }


_ALL = _by_word(BEFORE)
MEANING: Final = {word: meaning for word, meaning in _ALL.items() if " " not in word}
"""What a word before its number means, in lower case."""

PHRASES: Final = {tuple(word.split()): meaning for word, meaning in _ALL.items() if " " in word}
"""What two words mean together; "one-shot" and "one shot" alike."""

MEANING_AFTER: Final = _by_word(AFTER)
