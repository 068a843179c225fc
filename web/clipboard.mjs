// Copies texts and pictures to the clipboard.

const INLINED = ["fill", "stroke", "stroke-width", "font-size", "font-family", "text-anchor"];

export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // navigator.clipboard exists on secure addresses only.
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (!isCopied) throw new Error("the browser does not allow this page to copy");
}

// The text of an SVG file of a picture, with styles as attributes instead of classes.
export function standalone(picture) {
  const copy = picture.cloneNode(true);
  copy.removeAttribute("style");
  const [elements, copies] = [picture, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  elements.forEach((element, i) => {
    const style = getComputedStyle(element);
    copies[i].removeAttribute("class");
    if (!["path", "circle", "rect", "line", "text"].includes(element.localName)) return;
    for (const name of INLINED) {
      const isTextStyle = name.startsWith("font") || name.startsWith("text");
      const applies = name === "fill" || isTextStyle === (element.localName === "text");
      const value = style.getPropertyValue(name);
      if (value && applies) copies[i].setAttribute(name, value);
    }
  });
  const background = picture.ownerDocument.createElementNS(picture.namespaceURI, "rect");
  const card = getComputedStyle(picture.closest("figure")).backgroundColor;
  for (const [name, value] of Object.entries({ width: "100%", height: "100%", fill: card })) {
    background.setAttribute(name, value);
  }
  copy.querySelector("desc").after(background);
  return new XMLSerializer().serializeToString(copy);
}
