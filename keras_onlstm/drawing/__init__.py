"""SVG pictures, their files, and self-contained HTML pages."""
