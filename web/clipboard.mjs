// What can be taken out of the page.

const INLINED = ["fill", "stroke", "stroke-width", "font-size", "font-family", "text-anchor"];

export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Where the address is not secure there is but the old way.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("the browser does not let this page copy");
}

// A picture as a file of its own, which has its colours in itself.
export function standalone(picture) {
  const whole = picture.cloneNode(true);
  whole.removeAttribute("style");
  const [shown, written] = [picture, whole].map((one) => [one, ...one.querySelectorAll("*")]);
  shown.forEach((element, i) => {
    const style = getComputedStyle(element);
    written[i].removeAttribute("class");
    if (!["path", "circle", "rect", "line", "text"].includes(element.localName)) return;
    for (const name of INLINED) {
      const ofText = name.startsWith("font") || name.startsWith("text");
      const value = style.getPropertyValue(name);
      if (value && ofText === (element.localName === "text")) written[i].setAttribute(name, value);
      else if (value && name === "fill") written[i].setAttribute(name, value);
    }
  });
  const back = picture.ownerDocument.createElementNS(picture.namespaceURI, "rect");
  const card = getComputedStyle(picture.closest("figure")).backgroundColor;
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: card })) {
    back.setAttribute(name, value);
  }
  whole.querySelector("desc").after(back);
  return new XMLSerializer().serializeToString(whole);
}
