// What a report measures of itself once it is laid out, sent to the page that frames it.
addEventListener("load", () => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const seen = (element) => element.checkVisibility();
  const nameOf = (element) => element.getAttribute("class");
  const share = (element, frame) => {
    const [box, outer] = [element.getBoundingClientRect(), frame.getBoundingClientRect()];
    return { name: nameOf(element), x: (box.left - outer.left) / outer.width, width: box.width / outer.width,
      pixels: box.width, color: getComputedStyle(element).fill };
  };
  const pieces = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || !seen(parent) || parent.closest("title, script")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      pieces.push({ text: node.data, box, inScroll: Boolean(parent.closest(".scroll, .who")), node });
    }
  }
  pieces.sort((a, b) => a.box.top - b.box.top);
  const overlaps = [];
  pieces.forEach((one, index) => {
    for (let next = index + 1; next < pieces.length && pieces[next].box.top < one.box.bottom - 3; next++) {
      const other = pieces[next];
      const isBeside = other.box.left > one.box.right - 2 || one.box.left > other.box.right - 2;
      if (one.node !== other.node && !isBeside) overlaps.push([one.text, other.text]);
    }
  });
  parent.postMessage({
    width: innerWidth,
    scrollWidth: document.documentElement.scrollWidth,
    outside: pieces.filter((one) => !one.inScroll && one.box.right > innerWidth + 1).map((one) => one.text),
    overlaps,
    text: document.body.innerText,
    paper: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color,
    verdict: nameOf(document.querySelector(".verdict")),
    findings: all(".finding").filter(seen).map((one) => ({ rule: one.id, text: one.innerText, height: one.offsetHeight })),
    sections: all("details.partition").map((section) => ({
      name: section.querySelector("summary bdi").textContent,
      isOpen: section.open,
      map: all("svg.map rect", section).filter(seen).map((bar) => share(bar, bar.ownerSVGElement)),
      mapColors: Object.fromEntries(all(".legend .swatch", section).map((one) =>
        [nameOf(one).split(" ")[1], getComputedStyle(one).backgroundColor])),
      stable: all("svg.map line", section).filter(seen).map((line) => share(line, line.ownerSVGElement).x),
      tracks: all("svg.track rect:not(.wait)", section).filter(seen).map((bar) => share(bar, bar.ownerSVGElement)),
      waits: all("svg.track rect.wait", section).filter(seen).map((bar) => share(bar, bar.ownerSVGElement)),
      sizes: all("svg.sizes", section).filter(seen).map((bar) => all("rect", bar).map((part) => share(part, bar))),
      ticks: all("svg.axis text", section).filter(seen).map((one) => one.textContent),
    })),
    misaligned: all(".timeline").filter(seen).filter((one) => {
      const [track, axis] = ["svg.track", "svg.axis"].map((name) => one.querySelector(name).getBoundingClientRect());
      return Math.abs(track.left - axis.left) > 1 || Math.abs(track.right - axis.right) > 4;
    }).length,
    rows: all("#partitions tbody tr").filter(seen).length,
    foreign: all("img, iframe, object, embed, link, form, [src]").length,
    scripts: all("script").length - 1, // without this one
    handlers: all("*").filter((one) => one.getAttributeNames().some((name) => name.startsWith("on"))).length,
    links: all("[href]").map((one) => one.getAttribute("href")),
  }, "*");
});
