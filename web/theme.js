// Before anything is drawn: the theme that was chosen here, if one was.
{
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // where nothing can be kept the system decides
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
