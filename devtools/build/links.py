"""links.py FOLDER: fails if a link in a page below FOLDER leads to no file, or to no anchor of its page."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links = set(), set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            if value and name in ("href", "src"):
                self.links.add(value)


folder = Path(sys.argv[1]).resolve()
# 404.html is for web servers, and its links start at a server's root. print.html is the whole book as one page, and toc.html is a
# table of contents.
others = ("404.html", "print.html", "toc.html")
pages = {path.resolve(): Page(path) for path in folder.rglob("*.html") if path.name not in others}
dead, seen = [], 0
for path, page in sorted(pages.items()):
    for link in sorted(page.links):
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        seen += 1
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists() or folder not in [target, *target.parents]:
            dead.append(f"{path.relative_to(folder)}: {link} leads nowhere")
        elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
            dead.append(f"{path.relative_to(folder)}: {link} has no such anchor")
for line in dead:
    print(line)
if dead or not seen:
    sys.exit(f"{len(dead)} of {seen} links are dead")
print(f"links: {seen} on {len(pages)} pages, none dead")
