"""Dates as Sites write them for people: "3 days ago", "昨日", "sábado, 28 noviembre 2026".

Owns the words of time of each language.  Refuses to own: the dates of the standards (`feed_dates`).  Must never break: an unknown word is
no date, nothing raises, and what is only about right says so (SITES 3 and 13).
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Final

from lanes.sites.feed_dates import FIRST_YEAR, read_date

LONGEST: Final = 100
"""Characters of a text that may be a date; as in `feed_dates`."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _MINUTE, _HOUR, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_WEEK, _MONTH, _YEAR = 7 * _DAY, 30 * _DAY, 365 * _DAY

_UNITS: Final = {
    _SECOND: "s sec secs second seconds | 秒 秒钟 秒鐘 초 секунд секунду секунды segundo segundos seconde secondes sekunde sekunden "
    "detik",
    _MINUTE: "m min mins minute minutes | 分 分钟 分鐘 분 минут минуту минуты мин minuto minutos minuten menit",
    _HOUR: "h hr hrs hour hours | 時間 小时 小時 个小时 個小時 시간 час часа часов ч hora horas heure heures stunde stunden std jam",
    _DAY: "d day days | 日 天 일 день дня дней дн día días dia dias jour jours j tag tage tagen hari",
    _WEEK: "w wk wks week weeks | 週間 周 週 星期 个星期 個星期 주 주일 неделю недели недель нед semana semanas semaine semaines sem "
    "woche wochen minggu",
    _MONTH: "mo mos mth mths month months | か月 ヶ月 ヵ月 カ月 个月 個月 개월 달 месяц месяца месяцев мес mes meses mês mois monat "
    "monate monaten bulan",
    _YEAR: "y yr yrs year years | 年 년 год года лет año años ano anos an ans année années jahr jahre jahren tahun",
}
"""The words of each unit: English, which also stand alone ("18 hours"), then those of all others, which need their word for "ago"."""

_UNIT: Final = {word: unit for unit, words in _UNITS.items() for word in words.split()}
_ALONE: Final = frozenset(word for words in _UNITS.values() for word in words.split("|")[0].split())

_BEFORE: Final = "hace|il y a|vor|há"
_AFTER: Final = "ago|назад|atrás|yang lalu|lalu|以前|之前|前|전"
_ABOUT: Final = "about|over|almost|около|environ|約|约|약"
_ONE: Final = "an?|one|une?|una|uma?|einem|einer?|один|одну"

_AMOUNT: Final = re.compile(
    rf"(?P<before>(?:{_BEFORE})\s+)?(?:(?:{_ABOUT})\s*)?(?:(?P<digits>[0-9]{{1,6}})\s*|(?P<one>{_ONE})\s+)?"
    rf"(?P<unit>[^\W\d]+?)\.?(?P<after>\s*(?:{_AFTER}))?"
)

_MOMENTS: Final = (
    "just now|now|a moment ago|moments ago|a few seconds ago|たった今|刚刚|剛剛|방금|방금 전|только что|ahora mismo|justo ahora|"
    "à l'instant|gerade eben|agora mesmo|baru saja"
)
_DAYS_BACK: Final = (
    "today|今日|今天|오늘|сегодня|hoy|aujourd'hui|heute|hoje|hari ini",
    "yesterday|昨日|昨天|어제|вчера|ayer|hier|gestern|ontem|kemarin",
    "一昨日|前天|그저께|позавчера|anteayer|avant-hier|vorgestern|anteontem",
)
_NAMES: Final = dict.fromkeys(_MOMENTS.split("|"), (0 * _DAY, _MINUTE)) | {
    name: (back * _DAY, _DAY) for back, names in enumerate(_DAYS_BACK) for name in names.split("|")
}
"""What says an amount without a number: that amount, and its unit."""

_ENGLISH: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_MONTH_WORDS: Final = {
    "en": "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|october oct|november nov|"
    "december dec",
    "es": "enero ene|febrero feb|marzo mar|abril abr|mayo may|junio jun|julio jul|agosto ago|septiembre setiembre sept sep|octubre oct|"
    "noviembre nov|diciembre dic",
    "fr": "janvier janv|février févr fév|mars|avril avr|mai|juin|juillet juil|août|septembre sept|octobre oct|novembre nov|décembre déc",
    "de": "januar jan jänner|februar feb|märz mär mrz|april apr|mai|juni jun|juli jul|august aug|september sep|oktober okt|november nov|"
    "dezember dez",
    "id": "januari jan|februari feb|maret mar|april apr|mei|juni jun|juli jul|agustus agu agt|september sep|oktober okt|november nov|"
    "desember des",
    "th": "มกราคม ม.ค|กุมภาพันธ์ ก.พ|มีนาคม มี.ค|เมษายน เม.ย|พฤษภาคม พ.ค|มิถุนายน มิ.ย|กรกฎาคม ก.ค|สิงหาคม ส.ค|กันยายน ก.ย|ตุลาคม ต.ค|"
    "พฤศจิกายน พ.ย|ธันวาคม ธ.ค",
    "zh": "一月 1月|二月 2月|三月 3月|四月 4月|五月 5月|六月 6月|七月 7月|八月 8月|九月 9月|十月 10月|十一月 11月|十二月 12月",
}
"""By language, January to December; words of one month by spaces.  A new language is a new line."""


def _bare(word: str) -> str:
    """Without accents, as people type it."""
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


MONTHS: Final = {
    form: number
    for words in _MONTH_WORDS.values()
    for number, names in enumerate(words.split("|"), 1)
    for name in names.split()
    for form in {name, _bare(name)}
}
"""Month words of every language, lower case, with and without accents, to 1 to 12."""

_FILLERS: Final = frozenset({"de", "del", "ที่", "พ.ศ", "uhr", "à", "um", "pukul"})
_EAST: Final = re.compile(
    r"([0-9]{4})\s*[年년]\s*([0-9]{1,2})\s*[月월]\s*([0-9]{1,2})\s*[日일号號]?(?:\s*\(?(?:星期|週|周)?\w(?:曜日|요일)?\)?)??"
    r"(?:\s+([0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?.*))?"
)
_BUDDHIST: Final = range(2400, 2744)
"""Years of the Thai calendar: 543 ahead."""


def _clean(text: str) -> str:
    """Lower case, white space single, digits of every script ASCII.  NFKC, since a date holds nothing that it would hurt."""
    return " ".join(unicodedata.normalize("NFKC", text).lower().replace("\u2019", "'").split())


def _amount(text: str) -> tuple[timedelta, timedelta] | None:
    """What is taken off, and its unit."""
    if named := _NAMES.get(text):
        return named
    found = _AMOUNT.fullmatch(text)
    if not found or not (unit := _UNIT.get(found["unit"])):
        return None
    ago = found["before"] or found["after"]
    counted = found["digits"] or found["one"] or (ago and ago.strip() == "назад")  # "час назад": an hour ago
    if not counted or not (ago or found["unit"] in _ALONE):
        return None
    return int(found["digits"] or 1) * unit, unit


def relative(text: str | None, at: datetime) -> tuple[datetime | None, bool]:
    """`at` (aware: the answer's Date, else the instant of the fetch) less the amount, floored to the unit, in UTC; and whether it is
    approximate, which is always so.  (None, False) for unknown words: a date of any other form, "in 3 hours", garbage.

    In English the word "ago" may be missing ("18 hours", "3h").  One-letter m is minutes, mo months; months and years are 30
    and 365 days; weeks, months and years are floored to the day (SITES 13).
    """
    if not text or len(text) > LONGEST:
        return None, False
    try:
        if not (taken := _amount(_clean(text))):
            return None, False
        moment = at.astimezone(UTC) - taken[0]
        moment -= (moment - _EPOCH) % min(taken[1], _DAY)
    except (OverflowError, ValueError):
        return None, False
    return (moment, True) if moment.year >= FIRST_YEAR else (None, False)


def _english(text: str) -> str:
    """The same date with an English month and nothing else in words; weekdays, which lead, and fillers go."""
    words: list[str] = []
    thai = False
    for word in text.replace(",", " ").split():
        name = word.rstrip(".")
        if name in MONTHS:
            words.append(_ENGLISH[MONTHS[name] - 1])
            thai = thai or "\u0e00" <= name[0] <= "\u0e7f"
        elif (words or word[0].isdigit()) and name not in _FILLERS:
            words.append(name if len(words) < 2 else word)
    if thai:
        words = [
            str(int(word) - 543) if len(word) == 4 and word.isdecimal() and int(word) in _BUDDHIST else word
            for word in words
        ]
    return " ".join(words)


def localised(text: str | None) -> tuple[datetime | None, bool]:
    """The instant in UTC, and whether it is only a day; (None, False) for what is no date.

    Day, month word, year and, where there is one, time, in any language of `_MONTH_WORDS`, a weekday before it or not; month word, day,
    year; "2026年11月28日".  Also everything that `feed_dates.read_date` reads.
    """
    if not text or len(text) > LONGEST:
        return None, False
    text = _clean(text)
    if east := _EAST.fullmatch(text):
        year, month, day, clock = east.groups()
        return read_date(f"{year}-{month:0>2}-{day:0>2} {clock or ''}")
    moment, approximate = read_date(text)
    return (moment, approximate) if moment else read_date(_english(text))
