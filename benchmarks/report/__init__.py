"""Reports of result files: a web page that needs nothing else, and a picture.

    page.py    the page: tables, and charts as SVG written here, so that a report needs no library
    svg.py     the charts of the page
    picture.py the same charts as PNG, by matplotlib (`pip install ksched[bench]`), which is imported only then

`python -m benchmarks.report A.json B.json --html OUT.html --png OUT.png` makes both from one file or several.
"""

from benchmarks.report.page import write_html
from benchmarks.report.picture import write_png

__all__ = ["write_html", "write_png"]
