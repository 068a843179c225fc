// Sorts the sentences of the gallery. Without JavaScript the buttons stay hidden.

for (const bar of document.querySelectorAll(".gallery-sort")) {
  const list = document.querySelector(".gallery");
  const buttons = [...bar.querySelectorAll("button")];
  const number = (row, key) => Number(row.firstElementChild.dataset[key]);
  const sort = (button) => {
    const { key, sign } = button.dataset;
    const by = (a, b, name) => number(a, name) - number(b, name);
    const rows = [...list.children];
    list.append(...rows.sort((a, b) => sign * by(a, b, key) || by(a, b, "place")));
    for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
    bar.querySelector(".gallery-said").textContent = `Sorted by ${button.textContent}.`;
  };
  for (const button of buttons) button.addEventListener("click", () => sort(button));
  bar.hidden = false;
}
