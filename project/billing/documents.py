"""PDFs: made here, and put where their readers find them."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from reportlab.lib.pagesizes import A4
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas


def write_pdf(title: str, lines: Sequence[str]) -> bytes:
    """Write a page. The same words make the same bytes."""
    made = BytesIO()
    canvas = Canvas(made, pagesize=A4, invariant=1)
    canvas.setTitle(title)
    canvas.setFont("Helvetica-Bold", 18)
    canvas.drawString(25 * mm, 265 * mm, title)
    canvas.setFont("Helvetica", 11)
    for number, line in enumerate(lines):
        canvas.drawString(25 * mm, (250 - 7 * number) * mm, line)
    canvas.save()
    return made.getvalue()


def put(path: str, document: bytes) -> str:
    """Store a document under its path, in place of what is there. Gives the path under which it can be read."""
    return storages["documents"].save(path, ContentFile(document))
