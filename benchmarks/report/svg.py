"""Charts as SVG text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from benchmarks.report.charts import BarChart, LineChart

COLOURS = ("#1f6feb", "#d1560f", "#1a7f37", "#8250df", "#bf3989", "#57606a", "#9a6700", "#0a7ea4")

_WIDTH, _HEIGHT = 620, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 12, 34, 62

Scale = Callable[[float], float]


def draw(chart: LineChart | BarChart) -> str:
    """The chart as one svg element."""
    return _lines(chart) if isinstance(chart, LineChart) else _bars(chart)


def _lines(chart: LineChart) -> str:
    xs = [x for line in chart.lines for x in line.xs]
    ys = [y for line in chart.lines for y in line.ys if y is not None and (y > 0 or not chart.log_y)]
    if not xs or not ys:
        return ""
    low_x, high_x = min(0.0, *xs), max(xs)
    across = _linear(low_x, high_x or 1.0, _LEFT, _WIDTH - _RIGHT)
    if chart.log_y:
        low, high = 10.0 ** math.floor(math.log10(min(ys))), 10.0 ** math.ceil(math.log10(max(ys)))
        high = high if high > low else low * 10
        up = _logarithmic(low, high, _HEIGHT - _BOTTOM, _TOP)
        y_ticks = [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    else:
        y_ticks = ticks(0.0, max(ys))
        up = _linear(0.0, max(y_ticks[-1], max(ys)), _HEIGHT - _BOTTOM, _TOP)
    parts = [_frame(chart.title, chart.x_label, chart.y_label), _grid(ticks(low_x, high_x), across, y_ticks, up)]
    for number, line in enumerate(chart.lines):
        colour = COLOURS[number % len(COLOURS)]
        for piece in _pieces(line.xs, line.ys, chart.log_y):
            points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in piece)
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    parts.append(_legend([line.name for line in chart.lines]))
    return _svg(parts, chart.title)


def _bars(chart: BarChart) -> str:
    most = max((sum(bar.parts) for bar in chart.bars), default=0.0)
    if most <= 0:
        return ""
    y_ticks = ticks(0.0, most)
    up = _linear(0.0, max(y_ticks[-1], most), _HEIGHT - _BOTTOM, _TOP)
    room = (_WIDTH - _LEFT - _RIGHT) / len(chart.bars)
    width = min(90.0, room * 0.6)
    parts = [_frame(chart.title, "", chart.y_label), _grid([], lambda x: x, y_ticks, up)]
    for number, bar in enumerate(chart.bars):
        middle = _LEFT + room * (number + 0.5)
        below = 0.0
        for part, amount in enumerate(bar.parts):
            top, bottom = up(below + amount), up(below)
            parts.append(
                f'<rect x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{bottom - top:.1f}" '
                f'fill="{COLOURS[part % len(COLOURS)]}">'
                f"<title>{escape(chart.part_names[part])}: {amount:.3f}</title></rect>"
            )
            below += amount
        parts.append(_text(middle, _HEIGHT - _BOTTOM + 16, bar.name, "middle"))
        parts.append(_text(middle, up(below) - 4, f"{below:.3f}", "middle"))
    parts.append(_legend(list(chart.part_names)))
    return _svg(parts, chart.title)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`, at most about so many."""
    if high <= low:
        high = low + 1.0
    rough = (high - low) / most
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.floor(low / step)
    last = math.ceil(high / step)
    return [number * step for number in range(first, last + 1)]


def _pieces(xs: Sequence[float], ys: Sequence[float | None], positive: bool) -> list[list[tuple[float, float]]]:
    """The stretches of a curve between gaps."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(xs, ys, strict=True):
        if y is None or (positive and y <= 0):
            pieces.append([])
        else:
            pieces[-1].append((x, y))
    return [piece for piece in pieces if piece]


def _linear(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _logarithmic(low: float, high: float, start: float, end: float) -> Scale:
    inner = _linear(math.log10(low), math.log10(high), start, end)
    return lambda value: inner(math.log10(value))


def _frame(title: str, x_label: str, y_label: str) -> str:
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    return (
        _text(_LEFT, 18, title, "start", "bold")
        + _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - _BOTTOM + 32, x_label, "middle")
        + f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'
    )


def _grid(x_ticks: Sequence[float], across: Scale, y_ticks: Sequence[float], up: Scale) -> str:
    parts = []
    for tick in y_ticks:
        at = up(tick)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(_LEFT - 6, at + 4, _number(tick), "end"))
    for tick in x_ticks:
        if _LEFT - 1 <= across(tick) <= _WIDTH - _RIGHT + 1:
            parts.append(_text(across(tick), _HEIGHT - _BOTTOM + 16, _number(tick), "middle"))
    return "".join(parts)


def _legend(names: Sequence[str]) -> str:
    parts = []
    x = float(_LEFT)
    for number, name in enumerate(names):
        y = _HEIGHT - 10
        parts.append(f'<rect x="{x:.0f}" y="{y - 9}" width="10" height="10" fill="{COLOURS[number % len(COLOURS)]}"/>')
        parts.append(_text(x + 14, y, name, "start"))
        x += 30 + 6.6 * len(name)
    return "".join(parts)


def _text(x: float, y: float, text: str, anchor: str, weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"


def _svg(parts: Sequence[str], title: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg>"
    )
