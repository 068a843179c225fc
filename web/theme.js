// Applies the stored theme before the page is drawn.
{
  let theme = null;
  try {
    theme = localStorage.getItem("theme");
  } catch {
    // without storage the system theme is used
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
